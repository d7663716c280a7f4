from dataclasses import dataclass
from math import inf

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from gateway.mqtt.delivery_policy import DeliveryPolicy
from gateway.mqtt.output import Barrier, Output


def taken(output: Output, committed: int) -> bytes:
    return bytes(output.pop(committed) or b"")


def test_bytes_that_left_are_not_changed_by_what_comes_later() -> None:
    output = Output()
    output.append(b"a")
    left = output.pop(0)
    output.append(b"b")
    assert left is not None
    assert bytes(left) == b"a"


def test_shared_bytes_are_neither_copied_nor_changed() -> None:
    shared = b"for everyone"
    alone, with_more = Output(), Output()
    for output in (alone, with_more):
        output.append(shared)
    with_more.append(b", and more")
    assert alone.pop(0) is shared
    assert taken(with_more, 0) == b"for everyone, and more"
    assert shared == b"for everyone"
    assert (alone.size, alone.pop(0)) == (0, None)


def test_a_bytearray_is_not_copied() -> None:
    output, data = Output(), bytearray(b"a")
    output.append(data)
    assert output.pop(0) is data
    output.append(data, 1)
    assert output.pop(1) is data


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


def test_what_all_have_acknowledged_waits_for_no_batch() -> None:
    output, settled = Output(), barrier(0)
    output.append(b"a", 1, settled)
    assert taken(output, 0) == b"a"


def test_the_last_settlement_is_told_once() -> None:
    reported: list[int] = []
    promised = barrier(3)
    promised.on_settled = lambda: reported.append(promised.outstanding)
    for _ in range(3):
        promised.settle()
    assert reported == [0]


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

    @invariant()
    def counts_its_bytes_and_what_was_acknowledged_by_those_that_left(self) -> None:
        assert self.output.size == 4 * len(self.owed)
        assert self.output.acknowledgements == self.acknowledged

    def _append(self, commit: int, promised: Barrier | None) -> None:
        self.number += 1
        count = self.number % 3
        self.output.append(b"%04d" % self.number, commit, promised, count)
        self.owed.append(Owed(self.number, commit, promised, count))


TestOutputModel = OutputModel.TestCase


# --- what a delivery policy holds ----------------------------------------------------------------

POLICY = DeliveryPolicy(3, 100, 0.4)


def held(
    output: Output,
    data: bytes,
    now: float,
    policy: DeliveryPolicy = POLICY,
    latest: float = inf,
    commit: int = 0,
) -> None:
    before = output.size
    output.append(data, commit)
    output.hold(before, 1, policy, now, latest)


def test_messages_are_held_until_they_are_enough_large_enough_or_late() -> None:
    output = Output()
    held(output, b"a", 8.0)
    held(output, b"b", 8.1)
    assert output.held_until(8.2) == 8.4
    assert output.pop(0, 8.3) is None
    assert output.pop(0, 8.4) == b"ab"
    for data in (b"a", b"b"):
        held(output, data, 9.0)
        assert output.pop(0, 9.0) is None
    held(output, b"c", 9.0)
    assert output.pop(0, 9.0) == b"abc"
    held(output, b"x" * 99, 10.0)
    assert output.pop(0, 10.0) is None
    held(output, b"x", 10.0)
    assert output.pop(0, 10.0) == b"x" * 100
    held(output, b"y" * 100, 11.0)
    assert output.pop(0, 11.0) == b"y" * 100


def test_a_message_that_expires_is_held_no_longer_than_that() -> None:
    output = Output()
    held(output, b"a", 8.0)
    held(output, b"b", 8.0, latest=8.05)
    held(output, b"", 8.0, latest=8.01)  # nothing was appended
    assert output.held_until(8.0) == 8.05
    assert output.pop(0, 8.05) == b"ab"


def test_the_shortest_policy_of_what_is_held_counts() -> None:
    output = Output()
    held(output, b"a", 8.0)
    held(output, b"b", 8.0, DeliveryPolicy(100, 100, 0.2))
    due = output.held_until(8.0)
    assert 8.1 < due <= 8.2
    held(output, b"c", 8.0, DeliveryPolicy(100, 100, 1.0))
    assert output.held_until(8.0) == due


def test_anything_else_takes_along_what_is_held() -> None:
    output = Output()
    held(output, b"a", 8.0)
    output.append(b"-")
    held(output, b"b", 8.0)
    assert (output.held_until(8.0), output.pop(0, 8.0)) == (0.0, b"a-b")
    output.append(b"-")
    held(output, b"a", 8.0)
    assert output.pop(0, 8.0) == b"-a"
    held(output, b"a", 8.0)
    output.release()
    assert output.pop(0, 8.0) == b"a"
    output.release()
    assert output.pop(0, 8.0) is None


def test_what_waits_for_a_batch_takes_along_what_would_be_held() -> None:
    output = Output()
    output.append(b"a", 1)
    held(output, b"b", 8.0)
    assert output.pop(0, 8.0) is None
    assert output.pop(1, 8.0) == b"ab"


def test_messages_that_wait_for_a_batch_are_held_too_and_leave_when_both_let_them() -> None:
    for committed_first in (True, False):
        output = Output()
        held(output, b"a", 8.0, commit=1)
        held(output, b"b", 8.1, commit=2)
        assert output.pop(2, 8.3) is None, "the policy holds them"
        if committed_first:
            assert output.pop(2, 8.4) == b"ab"
            continue
        assert output.pop(0, 8.4) is None, "they are not on disk"
        held(output, b"c", 8.5, commit=3)
        assert output.buffered is not None
        assert output.buffered.arrivals == [(8.0, 1), (8.1, 1), (8.5, 1)]
        assert output.pop(2, 8.5) == b"ab"
        assert output.pop(3, 8.5) == b"c", "what was late took it along"
    for data in (b"a", b"b", b"c"):
        held(output, data, 9.0, commit=4)
    assert output.pop(4, 9.0) == b"abc", "they are enough"


def test_it_is_known_when_held_messages_came() -> None:
    output = Output()
    held(output, b"a", 8.0)
    held(output, b"b", 8.1)
    assert output.buffered is not None
    assert output.buffered.arrivals == [(8.0, 1), (8.1, 1)]
    output.pop(0, 9.0)
    assert output.buffered is None


class Holding(RuleBasedStateMachine):
    """Whatever is held and appended leaves in order, once it is on disk and never later."""

    def __init__(self) -> None:
        super().__init__()
        self.output = Output()
        self.now = 1000.0
        self.queued: list[tuple[int, bytes]] = []  # commit and bytes
        self.commit = self.committed = 0
        self.due = inf  # by which no policy holds anything

    def append(self, data: bytes, *, on_disk: bool) -> int:
        """Note what is to come, and return the commit that it waits for."""
        self.commit += on_disk
        self.queued.append((self.commit, data))  # nothing overtakes what waits
        return self.commit if on_disk else 0

    @rule(
        policy=st.sampled_from([POLICY, DeliveryPolicy(2, 10, 1.0)]),
        data=st.binary(min_size=1),
        on_disk=st.booleans(),
    )
    def message(self, policy: DeliveryPolicy, data: bytes, on_disk: bool) -> None:
        held(self.output, data, self.now, policy, commit=self.append(data, on_disk=on_disk))
        self.due = min(self.due, self.now + policy.delay)

    @rule(data=st.binary(min_size=1), on_disk=st.booleans())
    def answer(self, data: bytes, on_disk: bool) -> None:
        self.output.append(data, self.append(data, on_disk=on_disk))
        self.due = self.now

    @rule(seconds=st.floats(0.0, 0.5), commits=st.booleans())
    def time_passes(self, seconds: float, commits: bool) -> None:
        self.now += seconds
        if commits:
            self.committed = self.commit
        left = self.output.pop(self.committed, self.now) or b""
        free = [data for commit, data in self.queued if commit <= self.committed]
        if left:
            assert left == b"".join(free)
            self.queued = self.queued[len(free) :]
            self.due = inf if not self.queued else self.due
        else:
            assert not free or self.due > self.now

    @invariant()
    def nothing_is_late(self) -> None:
        if self.queued and self.due <= self.now:
            assert not self.output.held_until(self.now)
        assert self.output.size == sum(len(data) for _, data in self.queued)


TestHolding = pytest.mark.uncovered(Holding.TestCase)
