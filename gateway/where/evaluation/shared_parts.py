"""Parts that several expressions have: each is evaluated once for a message."""

from collections.abc import Hashable
from typing import Final
from weakref import WeakValueDictionary

from gateway.mqtt.message import UNKNOWN, Message
from gateway.where.evaluation.closures import Builder, Compiler, Reader
from gateway.where.language.conversions import Value
from gateway.where.language.expression import (
    Arithmetic,
    Call,
    Cast,
    Expression,
    Like,
    SearchedCase,
    SimpleCase,
    TopicMatches,
    canonical_key,
    walk,
)

KINDS: Final = (Arithmetic, Call, Cast, Like, SearchedCase, SimpleCase, TopicMatches)
"""Nodes that cost more than a lookup of their value; a field or a comparison does not."""

MAXIMUM_NODES: Final = 32
"""Larger parts are not compared with others."""


class _Part:
    """A part of one or more expressions in use."""

    __slots__ = ("__weakref__", "_read", "shared")

    def __init__(self, read: Reader) -> None:
        self._read = read
        self.shared = False

    def value(self, message: Message) -> Value:
        """Return the value for a message, which stores it if several expressions have the part."""
        if not self.shared:
            return self._read(message)
        values = message.part_values
        if values is None:
            values = message.part_values = {}
        value: Value = values.get(self, UNKNOWN)
        if value is UNKNOWN:
            value = values[self] = self._read(message)
        return value


class SharedParts:
    """The parts of all expressions in use; one is forgotten with its last expression."""

    __slots__ = ("_parts",)

    def __init__(self) -> None:
        self._parts: WeakValueDictionary[Hashable, _Part] = WeakValueDictionary()

    def __len__(self) -> int:
        return len(self._parts)

    def builder(self, build: Builder) -> Builder:
        """Return a builder for a kind of node that reuses existing parts."""

        def build_once(expression: Expression, compiler: Compiler) -> Reader:
            nodes = walk(expression)
            if len(nodes) > MAXIMUM_NODES:
                return build(expression, compiler)
            key = canonical_key(nodes)
            part = self._parts.get(key)
            if part is None:
                part = self._parts[key] = _Part(build(expression, compiler))
            else:
                part.shared = True
            return part.value

        return build_once

    def shares(self, expression: Expression) -> bool:
        """Say whether several expressions have this part."""
        nodes = walk(expression) if isinstance(expression, KINDS) else []
        if not nodes or len(nodes) > MAXIMUM_NODES:
            return False
        part = self._parts.get(canonical_key(nodes))
        return part is not None and part.shared
