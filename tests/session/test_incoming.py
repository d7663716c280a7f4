import tracemalloc
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.session.incoming import IDENTIFIER_OVERHEAD, Incoming
from gateway.session.queue.memory import QueueMemory


@pytest.mark.uncovered
@pytest.mark.parametrize("together", [False, True])
def test_what_was_released_takes_no_memory(together: bool) -> None:
    incoming, numbers = Incoming(65_535, QueueMemory()), list(range(20_000, 0, -2))
    tracemalloc.start()
    for number in numbers:
        incoming.add(number)
    most = tracemalloc.get_traced_memory()[0]
    if together:
        assert incoming.remove_all(numbers)
    else:
        for number in numbers:
            incoming.remove(number)
    left = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert most > 250_000
    assert left < most / 5  # what measures the coverage of tests takes some, too


def test_it_is_full_by_number_or_by_memory() -> None:
    memory = QueueMemory(3 * IDENTIFIER_OVERHEAD)
    incoming, other = Incoming(2, memory), Incoming(2, memory)
    full = [incoming.full]
    for each in (1, 2):
        incoming.add(each)
        full.append(incoming.full)
    full.append(other.full)
    other.add(1)
    assert [*full, other.full] == [False, False, True, False, True]
    incoming.clear()
    assert memory.bytes == IDENTIFIER_OVERHEAD
    other.remove(1)
    other.remove(1)
    assert memory.bytes == 0


def test_those_are_new_that_are_neither_known_nor_named_twice() -> None:
    incoming = Incoming(20, QueueMemory())
    incoming.add(7)
    assert [incoming.fresh(each) for each in ([3, 1], [3, 1, 3], [5, 7, 9])] == [2, 2, 1]


def test_identifiers_that_rise_are_released_from_the_front() -> None:
    memory = QueueMemory()
    incoming = Incoming(20, memory)
    assert incoming.add_all(range(5, 8))
    assert incoming.add_all(range(8, 10))
    assert not incoming.add_all(range(9, 11))
    assert not incoming.add_all((50, 50))
    assert (len(incoming), incoming.capacity, list(incoming)) == (5, 15, [5, 6, 7, 8, 9])
    assert incoming.remove_all(range(5, 7))
    assert incoming.remove(7)
    assert not incoming.remove_all(range(8, 11))
    assert incoming.remove_all(range(8, 10))
    assert (len(incoming), memory.bytes) == (0, 0)
    assert incoming.add_all((30, 40))
    assert not incoming.add_all((40, 41))


MANY = st.one_of(
    st.builds(
        lambda first, count: range(first, first + count), st.integers(1, 12), st.integers(1, 6)
    ),
    st.lists(st.integers(1, 14), min_size=1, max_size=4).map(tuple),
)
STEPS = st.one_of(
    st.tuples(st.sampled_from(["add", "remove"]), st.integers(1, 14)),
    st.tuples(st.sampled_from(["add_all", "remove_all"]), MANY),
    st.just(("begin", None)),
)


SOME = [range(3, 9), range(1, 3), (5, 6, 7), (9, 8), (2, 13, 2), range(20, 22)]


def fresh(numbers: Sequence[int], known: dict[int, bool]) -> int:
    """Return how many of the first numbers are not known, and come once."""
    return next(
        (n for n, each in enumerate(numbers) if each in known or each in numbers[:n]), len(numbers)
    )


@given(st.lists(STEPS, max_size=30))
def test_it_is_as_if_each_were_kept_by_itself(steps: list[tuple[str, object]]) -> None:
    memory = QueueMemory()
    incoming = Incoming(100, memory)
    model: dict[int, bool] = {}
    for step, value in steps:
        if step == "begin":
            incoming.begin()
            model = dict.fromkeys(model, False)
        elif isinstance(value, int):
            given = getattr(incoming, step)(value)
            if step == "add":
                assert given == (not model.get(value, False))
                model[value] = True
            else:
                assert given is model.pop(value, None)
        else:
            assert isinstance(value, range | tuple)
            new, own = step == "add_all", {number for number in model if model[number]}
            possible = not model.keys() & set(value) if new else own >= set(value)
            assert getattr(incoming, step)(value) == (possible and len(set(value)) == len(value))
            if possible and len(set(value)) == len(value):
                for number in value:
                    if new:
                        model[number] = True
                    else:
                        del model[number]
        assert (len(incoming), set(incoming)) == (len(model), set(model))
        assert all(incoming.fresh(numbers) == fresh(numbers, model) for numbers in SOME)
        assert all((number in incoming) == (number in model) for number in range(20))
        assert memory.bytes == IDENTIFIER_OVERHEAD * len(model)
    incoming.clear()
    assert (memory.bytes, list(incoming)) == (0, [])
