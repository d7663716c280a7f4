from hypothesis import given
from hypothesis import strategies as st

from pipeline.ledger.spans import Spans, holes

RANGES = st.lists(st.tuples(st.integers(1, 40), st.integers(0, 12)), max_size=12)


@given(RANGES, st.tuples(st.integers(1, 40), st.integers(0, 12)))
def test_spans_are_a_map_of_numbers_that_keeps_the_first_value(
    ranges: list[tuple[int, int]], asked: tuple[int, int]
) -> None:
    spans: Spans[int] = Spans()
    plain: dict[int, int] = {}
    for value, (first, more) in enumerate(ranges):
        spans.put(first, first + more, value)
        for number in range(first, first + more + 1):
            plain.setdefault(number, value)
    flat = [(n, each.value) for each in spans for n in range(each.first, each.last + 1)]
    assert flat == sorted(plain.items())
    low, high = asked[0], sum(asked)
    near = spans.overlapping(low, high)
    assert near == [each for each in spans if each.first <= high and each.last >= low]
    free = [n for first, last in holes(near, low, high) for n in range(first, last + 1)]
    assert free == [n for n in range(low, high + 1) if n not in plain]
