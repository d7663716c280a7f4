from hypothesis import given
from hypothesis import strategies as st

from gateway.mqtt.output import Output


def taken(output: Output, committed: int) -> bytes:
    return bytes(output.take(committed) or b"")


def test_what_waits_for_nothing_leaves_at_once() -> None:
    output = Output()
    output.append(b"a")
    output.append(b"b")
    assert output.size == 2
    assert taken(output, 0) == b"ab"
    assert output.size == 0
    assert output.take(0) is None


def test_what_stands_behind_a_mark_waits_with_it() -> None:
    output = Output()
    output.append(b"a")
    output.append(b"b", 1)
    output.append(b"c")
    output.append(b"d", 2)
    assert taken(output, 0) == b"a"
    assert output.waiting_for == 1
    assert output.take(0) is None
    assert taken(output, 1) == b"bc"
    assert output.size == 1
    assert taken(output, 2) == b"d"
    assert output.waiting_for == 0


def test_a_commit_may_pass_several_marks() -> None:
    output = Output()
    for mark in (1, 2, 3):
        output.append(b"%d" % mark, mark)
    assert taken(output, 2) == b"12"
    assert taken(output, 9) == b"3"


def test_bytes_that_left_are_not_changed_by_what_comes_later() -> None:
    output = Output()
    output.append(b"a")
    left = output.take(0)
    output.append(b"b")
    assert left is not None
    assert bytes(left) == b"a"


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("append"), st.integers(0, 3)),
            st.tuples(st.just("commit"), st.integers(0, 3)),
        )
    )
)
def test_order_is_kept_and_no_mark_is_passed(steps: list[tuple[str, int]]) -> None:
    output, committed, number = Output(), 0, 0
    newest = 0  # marks are batch numbers, which never fall
    owed: list[tuple[int, int]] = []
    for step, value in steps:
        if step == "append":
            mark = newest = max(newest, committed + value) if value else newest
            output.append(b"%02d" % (number % 100), mark if value else 0)
            owed.append((number % 100, mark if value else 0))
            number += 1
        else:
            committed += value
            left = taken(output, committed)
            free = next((i for i, (_, mark) in enumerate(owed) if mark > committed), len(owed))
            assert left == b"".join(b"%02d" % one for one, _ in owed[:free])
            del owed[:free]
            assert output.size == 2 * len(owed)


def test_an_acknowledgement_counts_once_it_has_left() -> None:
    output = Output()
    output.append(b"a")
    output.note_acknowledgement()
    output.append(b"b", 1)
    output.append(b"c")
    output.note_acknowledgement()
    output.note_acknowledgement()
    output.append(b"d", 2)
    output.note_acknowledgement()
    assert output.acknowledgements == 0
    output.take(0)
    assert output.acknowledgements == 1
    output.take(0)
    assert output.acknowledgements == 1
    output.take(2)
    assert output.acknowledgements == 4
