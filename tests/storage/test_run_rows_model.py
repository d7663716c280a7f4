"""Runs, sessions and crashes, in any order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.broker.settings import BrokerSettings
from gateway.mqtt.packets import Publish
from tests.support.counted_rows import everything_is_counted
from tests.support.durable_broker import DurableHarness
from tests.support.memory_client import MemoryClient
from tests.support.run_rows import acknowledge, away, nothing_is_left, publish


class Life:
    """A session that comes, goes and crashes while runs come for it; all is acknowledged once.

    `hold` lets turns pass without a commit: a crash then forgets what came since, and a message
    whose acknowledgement it forgets may come again.
    """

    def __init__(self, window: int) -> None:
        self.harness = DurableHarness(BrokerSettings(maximum_inflight=window))
        away(self.harness)
        self.client: MemoryClient | None = None
        self.published = self.safe = 0
        self.first_time: list[int] = []
        self.sent: set[int] = set()
        self.finished: set[int] = set()
        self.forgettable: set[int] = set()
        self.owed: list[tuple[int, int]] = []

    def publish(self, count: int) -> None:
        publish(self.harness, count, self.published)
        self.published += count
        self.look()

    def hold(self) -> None:
        self.harness.commits = False

    def commit(self) -> None:
        self.harness.commits = True
        self.harness.settle()
        self.look()

    def come(self) -> None:
        if self.client is None:
            self.commit()
            self.client = self.harness.persistent("away")
            self.look()

    def go(self) -> None:
        if self.client is not None:
            self.client.drop()
        self.client, self.owed = None, []
        self.look()

    def crash(self) -> None:
        self.harness.crash()
        self.client, self.owed = None, []
        self.finished -= self.forgettable
        if self.forgettable or self.published > self.safe:
            self.sent.clear()
        self.published = self.safe
        self.first_time = [number for number in self.first_time if number < self.safe]
        self.commit()

    def acknowledge(self, count: int, skip: int) -> None:
        if self.client is not None:
            answers = self.owed[skip : skip + count]
            del self.owed[skip : skip + count]
            acknowledge(self.client, *(packet_id for _, packet_id in answers))
            self.finished |= {number for number, _ in answers}
            self.forgettable |= {number for number, _ in answers}
            self.look()

    def look(self) -> None:
        if self.harness.commits:
            everything_is_counted(self.harness)
            self.safe = self.published
            self.forgettable.clear()
        for packet in [] if self.client is None else self.client.take():
            assert isinstance(packet, Publish)
            number = int(packet.payload)
            assert number not in self.finished
            assert packet.dup or number not in self.sent
            self.sent.add(number)
            if number not in self.first_time:
                self.first_time.append(number)
            self.owed.append((number, packet.packet_id))

    def end(self) -> None:
        self.commit()
        self.come()
        while self.owed:
            self.acknowledge(len(self.owed), 0)
        assert self.first_time == [*range(self.published)]
        assert self.finished == {*range(self.published)}
        nothing_is_left(self.harness)


LIVES = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.integers(1, 12)),
        st.tuples(st.just("acknowledge"), st.integers(1, 9), st.sampled_from([0, 0, 0, 1, 3])),
        st.tuples(st.sampled_from(["come", "come", "go", "crash", "hold", "commit"])),
    ),
    max_size=25,
)


@given(steps=LIVES, window=st.integers(1, 15), head=st.integers(1, 20))
def test_nothing_is_lost_or_comes_twice_without_saying_so(
    steps: list[tuple[str, int]], window: int, head: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gateway.session.delivery_queue.HEAD_MESSAGES", head)
        patch.setattr("gateway.storage.restore.HEAD_MESSAGES", head)
        patch.setattr("gateway.storage.pager.PAGE_MESSAGES", max(1, head // 2))
        life = Life(window)
        for name, *numbers in steps:
            getattr(life, name)(*numbers)
        life.end()
