"""An accepted application message, and the values that `$where` reads from it.

Text, JSON value, topic levels and user properties are decoded when first needed and stored in the
message, so that many filters cost one decode (where-language 14.2).
"""

import re
from collections.abc import Callable
from functools import cache
from itertools import accumulate
from typing import Any, Final

from gateway.mqtt.output import Barrier
from gateway.mqtt.properties import NO_PROPERTIES, Properties

JSON_BYTES: Final = 262_144
"""Longest payload that is decoded; a longer one is neither text nor JSON."""

JSON_LEVELS: Final = 100
"""Deepest nesting of a payload that is JSON."""

STRING_CODE_POINTS: Final = 65_535
"""Longest text of a payload."""

INTEGER_LOWEST: Final = -(2**63)
INTEGER_HIGHEST: Final = 2**63 - 1

NOT_JSON: Final[Any] = object()
"""The value of a payload that is not JSON; no step of a path leads from it."""

_STRUCTURE: Final = bytes(byte for byte in range(256) if byte not in b'[]{}"')
"""All bytes except those that determine the depth of a value."""

_SQUARE: Final = bytes.maketrans(b"{}", b"[]")
_RUN: Final = re.compile(rb"\[+|\]+")
_OPENING: Final = b"["[0]

_MANY: Final = 8_192
"""Runs of opening brackets above which they are not followed one by one: that takes a
millisecond."""

_JSON_BYTES = JSON_BYTES  # compiled, C names that no other module sees
_JSON_LEVELS = JSON_LEVELS
_TWO_BRACKETS_A_LEVEL = 2 * JSON_LEVELS

_DIGITS_ONLY: Final = bytes(48 if byte in b"0123456789" else 0 for byte in range(256))
_LONG_NUMBER: Final = b"0" * 19
"""Digits of the shortest integer that may not fit 64 bits, as translated by `_DIGITS_ONLY`."""

_LONG_DIGITS: Final = re.compile(_LONG_NUMBER + b"0*")
"""Matches the digits of such an integer; a literal prefix is found ten times as fast as a class of
digits."""

_MINUS: Final = b"-"[0]
_HIGHEST: Final = b"%d" % INTEGER_HIGHEST
_LOWEST: Final = b"%d" % -INTEGER_LOWEST


def decode_payload(payload: bytes) -> str | None:
    """Decode UTF-8; None if `payload` is not well-formed or longer than JSON_BYTES."""
    if len(payload) > JSON_BYTES:
        return None
    try:
        return payload.decode()
    except UnicodeDecodeError:
        return None


def parse_json(payload: bytes) -> Any:
    """Return the value of a whole RFC 8259 text, NOT_JSON if `payload` is none or is too long.

    An INTEGER is an int and every other number a float; strings are not yet checked against the
    STRING limit.
    """
    if len(payload) > _JSON_BYTES:
        return NOT_JSON
    decode, fault = _decoder()
    try:
        if _LONG_NUMBER in payload.translate(_DIGITS_ONLY):
            payload = _with_reals(payload)
        value = decode(payload)
    except (fault, ValueError, OverflowError, RecursionError):
        return NOT_JSON
    if len(payload) > _TWO_BRACKETS_A_LEVEL and _is_too_deep(payload):
        return NOT_JSON
    return value


@cache
def _decoder() -> tuple[Callable[[bytes], Any], type[Exception]]:
    """Return a JSON decoder and its exception; importing it takes 2 MiB, which no start needs."""
    import msgspec

    return msgspec.json.Decoder().decode, msgspec.MsgspecError


def _with_reals(payload: bytes) -> bytes:
    """Return a JSON text with `.0` after each integer beyond 64 bits, which makes it a REAL.

    An invalid text stays invalid.
    """
    payload = b"  " + payload + b" "  # so that every run of digits has a byte before and after it
    plain = _without_escapes(payload)
    parts: list[bytes] = []
    quotes = counted = copied = 0
    for found in _LONG_DIGITS.finditer(plain.translate(_DIGITS_ONLY)):
        begin, end = found.span()
        before = plain[begin - 1]
        if plain[end] in b".eE" or before in b".eE":
            continue
        if before in b"+-" and plain[begin - 2] in b"eE":
            continue
        bound = _LOWEST if before == _MINUS else _HIGHEST
        if end - begin == len(bound) and plain[begin:end] <= bound:
            continue
        quotes += plain.count(b'"', counted, begin)
        counted = begin
        if not quotes % 2:
            parts += (payload[copied:end], b".0")
            copied = end
    return b"".join((*parts, payload[copied:]))


def _without_escapes(payload: bytes) -> bytes:
    """Return a JSON text of the same size in which every quotation mark delimits a string."""
    if b"\\" not in payload:
        return payload
    return payload.replace(b"\\\\", b"  ").replace(b'\\"', b"  ")


def _is_too_deep(payload: bytes) -> bool:
    """Count the levels exactly: the decoder's own limit depends on its stack.

    `payload` is a JSON text. If there are too many runs of brackets to follow, the innermost level
    is removed everywhere, repeatedly.
    """
    if payload.count(b"[") + payload.count(b"{") <= _JSON_LEVELS:
        return False
    brackets = _without_escapes(payload).translate(_SQUARE, _STRUCTURE)
    # two adjacent marks join two strings: no bracket is between them
    brackets = b"".join(brackets.replace(b'""', b"").split(b'"')[::2])
    most = _JSON_LEVELS
    while brackets.count(b"[]") > _MANY:
        brackets = brackets.replace(b"[]", b"")
        most -= 1
    runs = _RUN.findall(brackets)
    levels = accumulate([len(run) if run[0] == _OPENING else -len(run) for run in runs])
    return max(levels, default=0) > most


UNKNOWN: Any = object()
"""Marks a value that is not decoded yet."""

UNBOUNDED = 1 << 62
"""More work than any `$where` needs for a message."""

UNCOUNTED: Final = 1_000
"""The least work of an operation that is counted; less is covered by its node of the expression."""

ORDINARY: Final = 5_000
"""The work of nearly all evaluations is at most this."""

_CORRELATION = "correlation data"
"""Key of a long decoded Correlation Data in `part_values`."""


class OverBudgetError(Exception):
    """An evaluation has used up its work."""


class Message:
    """One accepted message; absent optional fields are None.

    `received_at` is wall time in milliseconds since 1970, `arrived` monotonic seconds of the same
    moment (expiry counts from it), `qos` and `retain` are the publisher's. `commit_within` is its
    durability class: the seconds by which its commit may be delayed, 0.0 for none, None for a
    message that is only in memory. `barrier` lets the publisher's answer be sent before that
    commit, once every receiver has acknowledged the message. `work_left` is the work that a
    `$where` may still cost. `part_values` caches values of parts of expressions, None while empty.
    Fields that begin with an underscore hold what `$where` has decoded.
    """

    __slots__ = (
        "_decoded",
        "_json",
        "_levels",
        "_user",
        "arrived",
        "barrier",
        "client_id",
        "commit_within",
        "content_type",
        "correlation_data",
        "message_expiry",
        "part_values",
        "payload",
        "payload_format",
        "qos",
        "received_at",
        "response_topic",
        "retain",
        "topic",
        "user_properties",
        "username",
        "work_left",
    )

    def __init__(
        self,
        topic: str,
        payload: bytes = b"",
        qos: int = 0,
        retain: bool = False,
        *,
        client_id: str | None = None,
        username: str | None = None,
        received_at: int | None = None,
        arrived: float = 0.0,
        content_type: str | None = None,
        response_topic: str | None = None,
        correlation_data: bytes | None = None,
        message_expiry: int | None = None,
        payload_format: int | None = None,
        user_properties: tuple[tuple[str, str], ...] = (),
    ) -> None:
        self.topic = topic
        self.payload = payload
        self.qos = qos
        self.retain = retain
        self.client_id = client_id
        self.username = username
        self.received_at = received_at
        self.arrived = arrived
        self.content_type = content_type
        self.response_topic = response_topic
        self.correlation_data = correlation_data
        self.message_expiry = message_expiry
        self.payload_format = payload_format
        self.user_properties = user_properties
        self.commit_within: float | None = 0.0
        self.barrier: Barrier | None = None
        self.work_left = UNBOUNDED
        self._decoded: str | None = UNKNOWN
        self._json: Any = UNKNOWN
        self._levels: list[str] = UNKNOWN
        self.part_values: dict[Any, Any] | None = None
        self._user: dict[str, str] = UNKNOWN

    def set_properties(self, fields: Properties) -> None:
        """Set the fields that a PUBLISH has beside its topic and payload."""
        self.content_type = fields.content_type
        self.response_topic = fields.response_topic
        self.correlation_data = fields.correlation_data
        self.message_expiry = fields.message_expiry_interval
        self.payload_format = fields.payload_format_indicator
        self.user_properties = fields.user_properties

    def properties(self) -> Properties:
        """Return the same as properties of a PUBLISH: [MQTT-3.3.2-4], -15, -16, -17, -18, -20."""
        if not (
            self.user_properties
            or self.content_type is not None
            or self.payload_format is not None
            or self.message_expiry is not None
            or self.response_topic is not None
            or self.correlation_data is not None
        ):
            return NO_PROPERTIES
        return Properties(
            payload_format_indicator=self.payload_format,
            message_expiry_interval=self.message_expiry,
            content_type=self.content_type,
            response_topic=self.response_topic,
            correlation_data=self.correlation_data,
            user_properties=self.user_properties,
        )

    def spend(self, work: int) -> None:
        """Count work that an evaluation is about to do; raise OverBudgetError if it is too much."""
        if work > UNCOUNTED:
            self.work_left -= work
            if self.work_left < 0:
                raise OverBudgetError

    def text(self) -> str | None:
        """Return the whole payload as a STRING, None if it is none (where-language 6.3)."""
        decoded = self._decode()
        return None if decoded is None or len(decoded) > STRING_CODE_POINTS else decoded

    def json(self) -> Any:
        """Return the payload's JSON value, `NOT_JSON` if it is not JSON."""
        if self._json is UNKNOWN:
            self._json = parse_json(self.payload)
        return self._json

    def payload_is_json(self) -> bool:
        """Return whether the payload is JSON for all later readers (where-language 6.3)."""
        return self.json() is not NOT_JSON

    def levels(self) -> list[str]:
        """Return the Topic Name split at `/`."""
        if self._levels is UNKNOWN:
            self._levels = self.topic.split("/")
        return self._levels

    def user(self) -> dict[str, str]:
        """Return the user properties by key, the last value of each (where-language 6.2)."""
        if self._user is UNKNOWN:
            self._user = dict(self.user_properties)
        return self._user

    def forget_parts_but(self, kind: type) -> None:
        """Forget cached values of parts except those under a key of this type."""
        values = self.part_values or {}
        self.part_values = {key: values[key] for key in values if type(key) is kind}

    def correlation_text(self) -> str | None:
        """Return Correlation Data decoded as UTF-8, None if absent or not UTF-8."""
        data = self.correlation_data
        if data is None:
            return None
        if len(data) <= UNCOUNTED:
            return decode_payload(data)
        values = self.part_values
        if values is None:
            values = self.part_values = {}
        if _CORRELATION not in values:
            values[_CORRELATION] = decode_payload(data)
        text: str | None = values[_CORRELATION]
        return text

    def _decode(self) -> str | None:
        if self._decoded is UNKNOWN:
            self._decoded = decode_payload(self.payload)
        return self._decoded
