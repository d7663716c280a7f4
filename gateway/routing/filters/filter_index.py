"""The filtered subscriptions of one topic filter, by what their expressions compare."""

from collections.abc import Hashable

from gateway.mqtt.message import Message
from gateway.routing.filters.operand_index import IndexEntry, OperandIndex, excluding, including
from gateway.routing.subscriptions.subscription import Subscription
from gateway.where.compile import Where
from gateway.where.terms import Term, terms

INDEX_OVERHEAD = 570
"""Bytes of the index of a topic filter."""

NODE_OVERHEAD = 900
"""Bytes of a node of an operand that an index works out: the operand's tables, key and closures."""

EXPRESSION_OVERHEAD = 280
"""Bytes of an expression in an index, beside those of the expression itself."""


class FilterIndex:
    """Subscriptions by one of the terms of their `$where`, those of one expression together.

    A message costs one search for each operand in use, however many constants it is compared with.
    The first operand in the payload parses it, as the first evaluation would. An operand that may
    cost more, such as `UPPER(payload)`, is not indexed: evaluations have a budget. `bytes` is about
    what it occupies beside the expressions and the subscriptions themselves.
    """

    __slots__ = ("_entries", "_operands", "_others", "bytes")

    def __init__(self) -> None:
        self._entries: dict[Where, IndexEntry] = {}
        self._operands: dict[Hashable, OperandIndex] = {}
        self._others: dict[IndexEntry, None] = {}  # that have no term
        self.bytes = INDEX_OVERHEAD

    def __len__(self) -> int:
        """Return how many expressions there are."""
        return len(self._entries)

    def add(self, where: Where, subscription: Subscription) -> None:
        """Add a subscription with this expression."""
        entry = self._entries.get(where)
        if entry is None:
            entry = self._entries[where] = self._entry(where)
            self.bytes += EXPRESSION_OVERHEAD
        entry.subscriptions = including(entry.subscriptions, subscription)

    def discard(self, where: Where, subscription: Subscription) -> None:
        """Remove a subscription, which was added with the same expression."""
        entry = self._entries[where]
        entry.subscriptions = excluding(entry.subscriptions, subscription)
        if entry.subscriptions is None:
            del self._entries[where]
            self.bytes -= EXPRESSION_OVERHEAD
            self._forget(entry)

    def find(self, message: Message, found: list[IndexEntry]) -> None:
        """Append, each once, all entries whose expression can be TRUE for the message."""
        found.extend(self._others)
        for operand in self._operands.values():
            operand.find(message, found)

    def _entry(self, where: Where) -> IndexEntry:
        found = terms(where.expression)
        if not found:
            entry = IndexEntry(where, None)
            self._others[entry] = None
            return entry
        term = found[0] if len(found) == 1 else self._best(found)
        operand = self._operands.get(term.key)
        if operand is None:
            operand = self._operands[term.key] = OperandIndex(term.reader())
            self.bytes += NODE_OVERHEAD * term.nodes
        entry = IndexEntry(where, term)
        operand.add(term, entry)
        return entry

    def _forget(self, entry: IndexEntry) -> None:
        term = entry.term
        if term is None:
            del self._others[entry]
            return
        operand = self._operands[term.key]
        operand.discard(term, entry)
        if not operand:
            del self._operands[term.key]
            self.bytes -= NODE_OVERHEAD * term.nodes

    def _best(self, found: "list[Term]") -> Term:
        """Return the equality that the fewest entries have so far; without one, the first.

        So the site that all devices have in common is not what tells them apart.
        """
        equalities = [term for term in found if term.operator == "="]
        return min(equalities, key=self._count) if equalities else found[0]

    def _count(self, equality: Term) -> int:
        operand = self._operands.get(equality.key)
        return 0 if operand is None else operand.count(equality.constant)
