"""Indexes the filtered subscriptions of one topic filter by comparisons in their expressions."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from gateway.mqtt.message import Message
from gateway.routing.subscriptions.subscription import Subscription
from gateway.where.language.conversions import Number, Value, to_number

if TYPE_CHECKING:  # a gateway without `$where` does without what compiles it
    from gateway.where.compile import Term, Where
    from gateway.where.evaluation.closures import Reader

_Item = TypeVar("_Item")

Held: TypeAlias = set[_Item] | _Item | None
"""The content of a table's entry: most have exactly one item, stored without a container.

Items are hashable and no sets; an entry without any is None.
"""


def count(held: Held[_Item]) -> int:
    """Return how many are held."""
    if isinstance(held, set):
        return len(held)
    return 0 if held is None else 1


def including(held: Held[_Item], item: _Item) -> Held[_Item]:
    """Return the entry with one more item; a set is changed in place."""
    if held is None:
        return item
    if not isinstance(held, set):
        return {held, item}
    held.add(item)
    return held


def excluding(held: Held[_Item], item: _Item) -> Held[_Item]:
    """Return the entry without one of its items; a set is changed in place."""
    if not isinstance(held, set):
        return None
    held.remove(item)
    return held.pop() if len(held) == 1 else held


def gather(held: Held[_Item], found: list[_Item]) -> None:
    """Append all items of the entry."""
    if isinstance(held, set):
        found.extend(held)
    elif held is not None:
        found.append(held)


_Constant = TypeVar("_Constant", str, Number)


class IndexEntry:
    """An expression, and the subscriptions to one topic filter that have it.

    An entry without a `term` is found for every message. If an entry is `decided`, a message that
    finds it passes the expression without an evaluation.
    """

    __slots__ = ("decided", "subscriptions", "term", "where")

    def __init__(self, where: "Where", term: "Term | None") -> None:
        self.where = where
        self.term = term
        self.decided = term is not None and term.whole
        self.subscriptions: Held[Subscription] = None


class Equalities:
    """Entries by the constant of their equality.

    A text equals the same text. A numeric text also equals numbers of its value, but not other
    texts of that value. A number equals any text of its value, and 1 equals TRUE. Python's int,
    float and bool compare and hash as exact values.
    """

    __slots__ = ("_numbers", "_numeric_texts", "_texts")

    def __init__(self) -> None:
        self._texts: dict[str, Held[IndexEntry]] = {}
        self._numbers: dict[Number, Held[IndexEntry]] = {}
        self._numeric_texts: dict[Number, Held[IndexEntry]] = {}  # of `_texts`, by their value

    def __bool__(self) -> bool:
        return bool(self._texts or self._numbers)

    def count(self, constant: str | Number) -> int:
        """Return how many entries compare with the constant."""
        if isinstance(constant, str):
            return count(self._texts.get(constant))
        return count(self._numbers.get(constant))

    def add(self, term: "Term", entry: IndexEntry) -> None:
        """Add an entry by this term."""
        constant = term.constant
        if not isinstance(constant, str):
            _put(self._numbers, constant, entry)
            return
        _put(self._texts, constant, entry)
        number = to_number(constant)
        if number is not None:
            _put(self._numeric_texts, number, entry)

    def discard(self, term: "Term", entry: IndexEntry) -> None:
        """Remove an entry that was added by this term."""
        constant = term.constant
        if not isinstance(constant, str):
            _remove(self._numbers, constant, entry)
            return
        _remove(self._texts, constant, entry)
        number = to_number(constant)
        if number is not None:
            _remove(self._numeric_texts, number, entry)

    def find(self, value: Value, found: list[IndexEntry]) -> None:
        """Append the entries whose term is TRUE for this value of the operand."""
        if isinstance(value, str):
            gather(self._texts.get(value), found)
            number = to_number(value) if self._numbers else None
            if number is not None:
                gather(self._numbers.get(number), found)
        elif isinstance(value, int | float):
            gather(self._numbers.get(value), found)
            # TRUE equals 1, but not the text '1'
            if not isinstance(value, bool):
                gather(self._numeric_texts.get(value), found)


class Bounds:
    """Entries by the number that bounds the operand, the lower one of BETWEEN, in its order.

    Python orders int and float as exact values.
    """

    __slots__ = ("_above", "_between", "_bisect", "_entries", "_highs", "_numbers")

    def __init__(self, operator: str) -> None:
        self._above = operator in ("<", "<=")  # entries above the operand's value match
        self._between = operator == "BETWEEN"
        self._bisect = bisect_left if operator in (">", "<=") else bisect_right
        self._numbers: list[Number] = []
        self._highs: list[Number] = []  # the upper bounds of BETWEEN, at the same index
        self._entries: list[IndexEntry] = []  # likewise

    def __bool__(self) -> bool:
        return bool(self._entries)

    def add(self, term: "Term", entry: IndexEntry) -> None:
        """Add an entry by this term."""
        index = bisect_right(self._numbers, term.constant)
        self._numbers.insert(index, term.constant)
        self._highs.insert(index, term.high)
        self._entries.insert(index, entry)

    def discard(self, term: "Term", entry: IndexEntry) -> None:
        """Remove an entry that was added by this term."""
        # entries with equal numbers are adjacent, so the search is short
        index = self._entries.index(entry, bisect_left(self._numbers, term.constant))
        del self._numbers[index], self._highs[index], self._entries[index]

    def find(self, value: Value, found: list[IndexEntry]) -> None:
        """Append the entries whose term is TRUE for this value of the operand."""
        number = value if type(value) is float or type(value) is int else to_number(value)
        if number is None:
            return
        index = self._bisect(self._numbers, number)
        if self._above:
            found.extend(self._entries[index:])
        elif self._between:
            pairs = zip(self._entries[:index], self._highs, strict=False)
            found.extend([entry for entry, high in pairs if number <= high])
        else:
            found.extend(self._entries[:index])


class OperandIndex:
    """The entries whose terms have one operand, by operator, and the operand's reader."""

    __slots__ = ("read", "tables")

    def __init__(self, read: "Reader") -> None:
        self.read = read
        self.tables: dict[str, Equalities | Bounds] = {}  # by operator

    def __bool__(self) -> bool:
        return bool(self.tables)

    def count(self, constant: str | Number) -> int:
        """Return how many entries compare this operand for equality with the constant."""
        table = self.tables.get("=")
        return table.count(constant) if isinstance(table, Equalities) else 0

    def add(self, term: "Term", entry: IndexEntry) -> None:
        """Add an entry by this term."""
        operator = term.operator
        table = self.tables.get(operator)
        if table is None:
            table = self.tables[operator] = Equalities() if operator == "=" else Bounds(operator)
        table.add(term, entry)

    def discard(self, term: "Term", entry: IndexEntry) -> None:
        """Remove an entry that was added by this term."""
        table = self.tables[term.operator]
        table.discard(term, entry)
        if not table:
            del self.tables[term.operator]


def _put(table: dict[_Constant, Held[IndexEntry]], constant: _Constant, entry: IndexEntry) -> None:
    table[constant] = including(table.get(constant), entry)


def _remove(
    table: dict[_Constant, Held[IndexEntry]], constant: _Constant, entry: IndexEntry
) -> None:
    rest = excluding(table[constant], entry)
    if rest is None:
        del table[constant]
    else:
        table[constant] = rest


INDEX_OVERHEAD = 570
"""Bytes of the index of a topic filter."""

NODE_OVERHEAD = 900
"""Bytes of a node of an indexed operand: the operand's tables, key and closures."""

EXPRESSION_OVERHEAD = 280
"""Bytes of an expression in an index, without the expression itself."""


class FilterIndex:
    """Subscriptions by one of the terms of their `$where`, grouped by expression.

    A message costs one search for each operand in use, however many constants it is compared with.
    The first operand in the payload parses it, as the first evaluation would. An operand with
    unbounded cost, such as `UPPER(payload)`, is not indexed: evaluations have a budget. `bytes` is
    about what it occupies without the expressions and subscriptions.
    """

    __slots__ = (
        "_entries",
        "_operands",
        "_others",
        "bytes",
        "messages",
        "nanoseconds",
        "samples",
    )

    def __init__(self) -> None:
        self.messages = 0  # that were searched for
        self.nanoseconds = 0  # that the `samples` of these searches took
        self.samples = 0
        self._entries: dict[Where, IndexEntry] = {}
        self._operands: dict[Hashable, OperandIndex] = {}
        self._others: dict[IndexEntry, None] = {}  # entries without a term
        self.bytes = INDEX_OVERHEAD

    def __len__(self) -> int:
        """Return how many expressions there are."""
        return len(self._entries)

    def add(self, where: "Where", subscription: Subscription) -> None:
        """Add a subscription with this expression."""
        entry = self._entries.get(where)
        if entry is None:
            entry = self._entries[where] = self._entry(where)
            self.bytes += EXPRESSION_OVERHEAD
        entry.subscriptions = including(entry.subscriptions, subscription)

    def discard(self, where: "Where", subscription: Subscription) -> None:
        """Remove a subscription that was added with the same expression."""
        entry = self._entries[where]
        entry.subscriptions = excluding(entry.subscriptions, subscription)
        if entry.subscriptions is None:
            del self._entries[where]
            self.bytes -= EXPRESSION_OVERHEAD
            self._forget(entry)

    def find(self, message: Message, found: list[IndexEntry]) -> None:
        """Append, each once, all entries whose expression can be TRUE for the message."""
        self.messages += 1
        found.extend(self._others)
        for operand in self._operands.values():
            value = operand.read(message)
            for table in operand.tables.values():
                table.find(value, found)

    def measure(self, message: Message, timer: Callable[[], int]) -> None:
        """Measure the search for a message, which has been done before and counts once."""
        began = timer()
        self.find(message, [])
        self.nanoseconds += timer() - began
        self.samples += 1
        self.messages -= 1

    @property
    def mean(self) -> float:
        """Nanoseconds of a search, 0 while none was measured."""
        return self.nanoseconds / self.samples if self.samples else 0.0

    def _entry(self, where: "Where") -> IndexEntry:
        from gateway.where.compile import terms

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

    def _best(self, found: "list[Term]") -> "Term":
        """Return the equality with the fewest entries so far; without one, the first term.

        So a comparison that all expressions share (the same site) is not chosen.
        """
        equalities = [term for term in found if term.operator == "="]
        return min(equalities, key=self._count) if equalities else found[0]

    def _count(self, equality: "Term") -> int:
        operand = self._operands.get(equality.key)
        return 0 if operand is None else operand.count(equality.constant)
