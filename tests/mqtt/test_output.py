from dataclasses import dataclass

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from gateway.mqtt.output import Barrier, Output


def taken(output: Output, committed: int) -> bytes:
    return bytes(output.take(committed) or b"")


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
    acknowledgements: int = 0

    def free(self, committed: int) -> bool:
        settled = self.barrier is not None and self.barrier.outstanding == 0
        return self.commit <= committed or settled


class OutputModel(RuleBasedStateMachine):
    """Answers leave in order, none before its batch is on disk or its barrier is settled.

    Acknowledgements count once the bytes that were queued last before them have left.
    """

    def __init__(self) -> None:
        super().__init__()
        self.output = Output()
        self.batch = 1
        self.committed = 0
        self.number = 0
        self.owed: list[Owed] = []
        self.acknowledged = 0
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
        self.acknowledged += sum(each.acknowledgements for each in self.owed[:end])
        del self.owed[:end]
        assert self.output.waiting_for == (self.owed[0].commit if self.owed else 0)

    @rule(count=st.integers(1, 3))
    def note_acknowledgements(self, count: int) -> None:
        self.output.note_acknowledgements(count)
        if self.owed:
            self.owed[-1].acknowledgements += count
        else:
            self.acknowledged += count

    @invariant()
    def counts_its_bytes_and_what_was_acknowledged_by_those_that_left(self) -> None:
        assert self.output.size == 4 * len(self.owed)
        assert self.output.acknowledgements == self.acknowledged

    def _append(self, commit: int, promised: Barrier | None) -> None:
        self.number += 1
        self.output.append(b"%04d" % self.number, commit, promised)
        self.owed.append(Owed(self.number, commit, promised))


TestOutputModel = OutputModel.TestCase
