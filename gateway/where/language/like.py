"""LIKE without backtracking (where-language 7 and 14.4).

A pattern is split at `%` into segments of fixed length. The first and the last one are anchored at
the ends of the text. Those between are searched from left to right, each at its leftmost position:
that leaves most of the text for the next. So every code point is examined once.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from gateway.where.language.expression import Pattern, Wildcard

TextMatcher = Callable[[str], bool]

_WILDCARDS: Final = {wildcard.value: wildcard for wildcard in Wildcard}


def parse_pattern(text: str, escape: str | None) -> Pattern:
    """Resolve wildcards and escapes; raise ValueError for an invalid use of `escape`."""
    elements: list[str | Wildcard] = []
    code_points = iter(text)
    for code_point in code_points:
        if code_point != escape:
            elements.append(_WILDCARDS.get(code_point, code_point))
            continue
        escaped = next(code_points, "")
        if not escaped or (escaped not in _WILDCARDS and escaped != escape):
            raise ValueError(f"{escape!r} escapes only %, _ and itself")
        elements.append(escaped)
    return tuple(elements)


def like_matcher(pattern: Pattern) -> TextMatcher:
    """Compile `pattern` to a function that returns whether it matches a whole text."""
    segments = list(_segments(pattern))
    if len(segments) == 1:
        return _whole(segments[0])
    first, *middle, last = segments
    middle = [segment for segment in middle if segment.length]
    if not middle and first.is_literal and last.is_literal:
        return _prefix_and_suffix(first.literal, last.literal)
    return _sequence(first, middle, last)


class _Segment:
    """A part of a pattern without `%`; it matches texts of one length."""

    __slots__ = ("_accept", "_any", "_masks", "_runs", "is_literal", "length", "literal")

    def __init__(self, elements: Sequence[str | Wildcard]) -> None:
        self.length = len(elements)
        self.is_literal = Wildcard.ONE not in elements
        self.literal = "".join(element for element in elements if isinstance(element, str))
        self._runs = list(_runs(elements))
        self._accept = 1 << self.length >> 1
        self._any = sum(1 << i for i, element in enumerate(elements) if element is Wildcard.ONE)
        self._masks: dict[str, int] = {}
        for i, element in enumerate(elements):
            if isinstance(element, str):
                self._masks[element] = self._masks.get(element, self._any) | 1 << i

    def matches_at(self, text: str, position: int) -> bool:
        """Return whether the segment matches at `position`, where the text is long enough."""
        return all(text.startswith(run, position + offset) for offset, run in self._runs)

    def find(self, text: str, start: int, end: int) -> int:
        """Return the leftmost position between `start` and `end`, -1 without one."""
        if self.is_literal:
            return text.find(self.literal, start, end)
        return self._shift_and(text, start, end)

    def _shift_and(self, text: str, start: int, end: int) -> int:
        """Follow all candidates together, one bit each: the Shift-And algorithm."""
        candidates = 0
        mask_of, any_code_point, accept = self._masks.get, self._any, self._accept
        for position, code_point in enumerate(text[start:end], start):
            candidates = (candidates << 1 | 1) & mask_of(code_point, any_code_point)
            if candidates & accept:
                return position + 1 - self.length
        return -1


def _segments(pattern: Pattern) -> Iterator[_Segment]:
    elements: list[str | Wildcard] = []
    for element in pattern:
        if element is Wildcard.SEQUENCE:
            yield _Segment(elements)
            elements = []
        else:
            elements.append(element)
    yield _Segment(elements)


def _runs(elements: Sequence[str | Wildcard]) -> Iterator[tuple[int, str]]:
    """Yield each longest run of literal code points with its offset."""
    run = ""
    for offset, element in enumerate((*elements, Wildcard.ONE)):
        if isinstance(element, str):
            run += element
        elif run:
            yield offset - len(run), run
            run = ""


def _whole(segment: _Segment) -> TextMatcher:
    if segment.is_literal:
        return segment.literal.__eq__
    return lambda text: len(text) == segment.length and segment.matches_at(text, 0)


def _prefix_and_suffix(prefix: str, suffix: str) -> TextMatcher:
    if not suffix:
        return lambda text: text.startswith(prefix)
    shortest = len(prefix) + len(suffix)
    return lambda text: len(text) >= shortest and text.startswith(prefix) and text.endswith(suffix)


def _sequence(first: _Segment, middle: list[_Segment], last: _Segment) -> TextMatcher:
    shortest = first.length + last.length

    def matches(text: str) -> bool:
        end = len(text) - last.length
        if len(text) < shortest or not first.matches_at(text, 0) or not last.matches_at(text, end):
            return False
        position = first.length
        for segment in middle:
            position = segment.find(text, position, end)
            if position < 0:
                return False
            position += segment.length
        return True

    return matches
