from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from gateway.mqtt.output import Barrier, Output


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


def test_what_stands_behind_a_commit_waits_with_it() -> None:
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


def test_a_commit_may_free_several_parts() -> None:
    output = Output()
    for commit in (1, 2, 3):
        output.append(b"%d" % commit, commit)
    assert taken(output, 2) == b"12"
    assert taken(output, 9) == b"3"


def test_bytes_that_left_are_not_changed_by_what_comes_later() -> None:
    output = Output()
    output.append(b"a")
    left = output.take(0)
    output.append(b"b")
    assert left is not None
    assert bytes(left) == b"a"


def test_shared_bytes_are_neither_copied_nor_changed() -> None:
    shared = b"for everyone"
    alone, with_more = Output(), Output()
    for output in (alone, with_more):
        output.append(shared)
    with_more.append(b", and more")
    assert alone.take(0) is shared
    assert taken(with_more, 0) == b"for everyone, and more"
    assert shared == b"for everyone"
    assert (alone.size, alone.take(0)) == (0, None)


def test_a_bytearray_is_not_copied() -> None:
    output, data = Output(), bytearray(b"a")
    output.append(data)
    assert output.take(0) is data
    output.append(data, 1)
    assert output.take(1) is data


def test_an_acknowledgement_that_was_alone_counts_with_what_it_came_in() -> None:
    output = Output()
    output.append(b"a")
    output.note_acknowledgements(2)
    output.append(b"b", 1)
    output.note_acknowledgements(3)
    assert taken(output, 0) == b"a"
    assert output.acknowledgements == 2
    assert taken(output, 1) == b"b"
    assert output.acknowledgements == 5


def test_an_acknowledgement_that_is_alone_counts_when_it_has_left() -> None:
    output = Output()
    output.append(b"a")
    output.note_acknowledgements(1)
    assert output.acknowledgements == 0
    assert taken(output, 0) == b"a"
    assert output.acknowledgements == 1


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("append"), st.integers(0, 3)),
            st.tuples(st.just("commit"), st.integers(0, 3)),
        )
    )
)
def test_order_is_kept_and_no_commit_is_passed(steps: list[tuple[str, int]]) -> None:
    output, committed, number = Output(), 0, 0
    newest = 0  # commit numbers, which never fall
    owed: list[tuple[int, int]] = []
    for step, value in steps:
        if step == "append":
            commit = newest = max(newest, committed + value) if value else newest
            output.append(b"%02d" % (number % 100), commit if value else 0)
            owed.append((number % 100, commit if value else 0))
            number += 1
        else:
            committed += value
            left = taken(output, committed)
            free = next((i for i, (_, commit) in enumerate(owed) if commit > committed), len(owed))
            assert left == b"".join(b"%02d" % one for one, _ in owed[:free])
            del owed[:free]
            assert output.size == 2 * len(owed)


def test_an_acknowledgement_counts_once_it_has_left() -> None:
    output = Output()
    output.append(b"a")
    output.note_acknowledgements(1)
    output.append(b"b", 1)
    output.append(b"c")
    output.note_acknowledgements(1)
    output.note_acknowledgements(1)
    output.append(b"d", 2)
    output.note_acknowledgements(1)
    assert output.acknowledgements == 0
    output.take(0)
    assert output.acknowledgements == 1
    output.take(0)
    assert output.acknowledgements == 1
    output.take(2)
    assert output.acknowledgements == 4


def test_an_acknowledgement_whose_bytes_have_left_counts_at_once() -> None:
    output = Output()
    output.append(b"a")
    output.take(0)
    output.note_acknowledgements(1)
    assert output.acknowledgements == 1


@pytest.mark.parametrize("queued", [b"", b"a"])
@pytest.mark.parametrize("waits", [False, True])
def test_what_another_output_holds_follows_in_its_order(queued: bytes, waits: bool) -> None:
    output, other, awaited = Output(), Output(), barrier()
    if queued:
        output.append(queued)
    other.append(b"b")
    if waits:
        other.append(b"c", 1, awaited)
        other.append(b"d", 2)
    output.append_all(other)
    assert taken(output, 0) == queued + b"b"
    awaited.settle()
    assert taken(output, 0) == b"c" * waits
    assert taken(output, 2) == b"d" * waits
    output.append_all(Output())
    assert output.size == 0


def barrier(receivers: int = 1) -> Barrier:
    made = Barrier()
    for _ in range(receivers):
        made.add()
    return made


def test_what_waits_for_a_barrier_leaves_when_everyone_has_acknowledged() -> None:
    output, promised = Output(), barrier(2)
    output.append(b"a", 1, promised)
    promised.settle()
    assert output.take(0) is None
    promised.settle()
    assert taken(output, 0) == b"a"


def test_what_waits_for_a_barrier_leaves_when_its_batch_is_on_disk() -> None:
    output, promised = Output(), barrier()
    output.append(b"a", 1, promised)
    assert taken(output, 1) == b"a"
    promised.settle()
    assert output.take(1) is None


def test_a_settled_barrier_overtakes_nothing() -> None:
    output, promised = Output(), barrier()
    output.append(b"a", 1)
    output.append(b"b", 1, promised)
    promised.settle()
    assert output.take(0) is None
    assert taken(output, 1) == b"ab"


def test_a_row_behind_a_barrier_waits_for_its_own_batch() -> None:
    output, promised = Output(), barrier()
    output.append(b"a", 1, promised)
    output.append(b"b", 1)
    promised.settle()
    assert taken(output, 0) == b"a"
    assert taken(output, 1) == b"b"


def test_what_was_settled_before_it_is_queued_waits_for_nothing() -> None:
    output = Output()
    output.append(b"a", 1, Barrier())
    assert taken(output, 0) == b"a"


def test_the_last_settlement_is_told_once() -> None:
    told: list[int] = []
    promised = barrier(3)
    promised.on_settled = lambda: told.append(promised.outstanding)
    for _ in range(3):
        promised.settle()
    assert told == [0]


@dataclass(slots=True)
class Owed:
    """What the model knows of two bytes of output."""

    number: int
    commit: int
    barrier: Barrier | None

    def free(self, committed: int) -> bool:
        settled = self.barrier is not None and self.barrier.outstanding == 0
        return self.commit <= committed or settled


class OutputModel(RuleBasedStateMachine):
    """Answers leave in order, none before its batch is on disk or its barrier is settled."""

    def __init__(self) -> None:
        super().__init__()
        self.output = Output()
        self.batch = 1
        self.committed = 0
        self.number = 0
        self.owed: list[Owed] = []
        self.barriers: list[tuple[Barrier, int]] = []  # and the batch that each is for

    @rule()
    def answer(self) -> None:
        self._append(0, None)

    @rule()
    def answer_for_a_row(self) -> None:
        self._append(self.batch, None)

    @rule(receivers=st.integers(0, 3))
    def answer_for_receivers(self, receivers: int) -> None:
        promised = barrier(receivers)
        self.barriers.append((promised, self.batch))
        self._append(self.batch, promised)

    @rule(data=st.data())
    @precondition(lambda self: self.barriers)
    def answer_again(self, data: st.DataObject) -> None:
        promised, batch = data.draw(st.sampled_from(self.barriers))
        self._append(batch, promised)

    @rule(data=st.data())
    @precondition(lambda self: any(each.outstanding for each, _ in self.barriers))
    def acknowledge(self, data: st.DataObject) -> None:
        outstanding = [each for each, _ in self.barriers if each.outstanding]
        data.draw(st.sampled_from(outstanding)).settle()

    @rule()
    def close_batch(self) -> None:
        self.batch += 1

    @rule()
    @precondition(lambda self: self.committed < self.batch - 1)
    def commit(self) -> None:
        self.committed += 1

    @rule()
    def take(self) -> None:
        blocked = (i for i, each in enumerate(self.owed) if not each.free(self.committed))
        end = next(blocked, len(self.owed))
        expected = b"".join(b"%04d" % each.number for each in self.owed[:end])
        assert taken(self.output, self.committed) == expected
        del self.owed[:end]

    @invariant()
    def counts_its_bytes(self) -> None:
        assert self.output.size == 4 * len(self.owed)

    def _append(self, commit: int, promised: Barrier | None) -> None:
        self.number += 1
        self.output.append(b"%04d" % self.number, commit, promised)
        self.owed.append(Owed(self.number, commit, promised))


TestOutputModel = OutputModel.TestCase
