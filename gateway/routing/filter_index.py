"""The filtered subscriptions of one topic filter, by a constant that a field must be equal to."""

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, TypeVar

from gateway.routing.held import Held, count, excluding, gather, holds, including
from gateway.routing.where.conversions import Number, to_number
from gateway.routing.where.message import Message

if TYPE_CHECKING:
    from gateway.routing.where.closures import Reader
    from gateway.routing.where.equalities import Equality

_Constant = TypeVar("_Constant", str, Number)


class _Field:
    """The subscriptions that compare one field, by the constant (where-language 5).

    A text is equal to the same text, and a numeric one to numbers of its value, but not to
    other texts of that value; a number is equal to any text of its value, and 1 to TRUE.
    Python's int, float and bool are equal and found under each other's hash as exact values.
    """

    __slots__ = ("numbers", "numeric_texts", "read", "texts")

    def __init__(self, read: "Reader") -> None:
        self.read = read
        self.texts: dict[str, Held] = {}
        self.numbers: dict[Number, Held] = {}
        self.numeric_texts: dict[Number, Held] = {}  # those of `texts`, by their value

    def held(self, constant: str | Number) -> Held:
        """Return the subscriptions that compare with the constant."""
        if isinstance(constant, str):
            return self.texts.get(constant)
        return self.numbers.get(constant)

    def add(self, constant: str | Number, subscription: int) -> None:
        if not isinstance(constant, str):
            _put(self.numbers, constant, subscription)
            return
        _put(self.texts, constant, subscription)
        number = to_number(constant)
        if number is not None:
            _put(self.numeric_texts, number, subscription)

    def discard(self, constant: str | Number, subscription: int) -> None:
        if not isinstance(constant, str):
            _take(self.numbers, constant, subscription)
            return
        _take(self.texts, constant, subscription)
        number = to_number(constant)
        if number is not None:
            _take(self.numeric_texts, number, subscription)

    def is_empty(self) -> bool:
        return not self.texts and not self.numbers

    def find(self, message: Message, found: list[int]) -> None:
        """Append the subscriptions whose constant the field is equal to."""
        value = self.read(message)
        if isinstance(value, str):
            gather(self.texts.get(value), found)
            number = to_number(value) if self.numbers else None
            if number is not None:
                gather(self.numbers.get(number), found)
        elif isinstance(value, int | float):
            gather(self.numbers.get(value), found)
            if not isinstance(value, bool):
                gather(self.numeric_texts.get(value), found)


class FilterIndex:
    """Subscriptions by one of the equalities that their `$where` asks for.

    A message costs one look for each field in use, however many constants it is compared with;
    a look into the payload parses it, as the first evaluation would.
    """

    __slots__ = ("_fields",)

    def __init__(self) -> None:
        self._fields: dict[Hashable, _Field] = {}

    @property
    def fields(self) -> int:
        """How many fields the subscriptions are indexed by; 0 while there are none."""
        return len(self._fields)

    def add(self, equalities: "Sequence[Equality]", subscription: int) -> None:
        """Put the subscription at that of its equalities at which the fewest are held so far.

        So the site that all devices have in common is not what tells them apart.
        """
        equality = min(equalities, key=lambda each: count(self._held(each)))
        field = self._fields.get(equality.field_key)
        if field is None:
            field = self._fields[equality.field_key] = _Field(equality.reader())
        field.add(equality.constant, subscription)

    def discard(self, equalities: "Sequence[Equality]", subscription: int) -> None:
        """Remove the subscription, which was added with the same equalities."""
        equality = next(each for each in equalities if holds(self._held(each), subscription))
        field = self._fields[equality.field_key]
        field.discard(equality.constant, subscription)
        if field.is_empty():
            del self._fields[equality.field_key]

    def candidates(self, message: Message, found: list[int]) -> None:
        """Append, each once, all subscriptions whose expression can be TRUE for the message."""
        for field in self._fields.values():
            field.find(message, found)

    def _held(self, equality: "Equality") -> Held:
        field = self._fields.get(equality.field_key)
        return None if field is None else field.held(equality.constant)


def _put(table: dict[_Constant, Held], constant: _Constant, subscription: int) -> None:
    table[constant] = including(table.get(constant), subscription)


def _take(table: dict[_Constant, Held], constant: _Constant, subscription: int) -> None:
    left = excluding(table[constant], subscription)
    if left is None:
        del table[constant]
    else:
        table[constant] = left
