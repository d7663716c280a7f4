"""Crashes between any two steps: nothing acknowledged is lost, and QoS 2 comes exactly once."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from gateway.settings.broker import BrokerSettings
from tests.support.broker.durable_broker import DurableHarness
from tests.support.broker.exact_clients import ExactClient, ExactPublisher, ExactSubscriber

WINDOW = 3
"""Messages on their way to a subscriber; the rest waits in its queue."""


class ExactlyOnce(RuleBasedStateMachine):
    """Two publishers and two subscribers, a disk that is slow, and a power supply that is bad."""

    def __init__(self) -> None:
        super().__init__()
        self.harness = DurableHarness(BrokerSettings(maximum_inflight=WINDOW))
        self.publishers = [ExactPublisher("p"), ExactPublisher("q")]
        self.subscribers = [ExactSubscriber("a", "t"), ExactSubscriber("b", "t")]
        self.clients: list[ExactClient] = [*self.publishers, *self.subscribers]
        self.published: dict[int, set[bytes]] = {1: set(), 2: set()}
        self.reconnect_all()
        while any([client.react() for client in self.clients]):  # noqa: C419 - each of them
            pass
        self.harness.commits = False

    def reconnect_all(self) -> None:
        for client in self.clients:
            if client.network is None:
                client.connect(self.harness)

    @precondition(lambda self: any(each.may_publish for each in self.publishers))
    @rule(data=st.data(), qos=st.sampled_from([1, 2]), count=st.sampled_from([1, 1, 2, 3]))
    def publish(self, data: st.DataObject, qos: int, count: int) -> None:
        publisher = data.draw(
            st.sampled_from([each for each in self.publishers if each.may_publish])
        )
        first = sum(map(len, self.published.values()))
        payloads = [b"%d" % number for number in range(first, first + count)]
        self.published[qos].update(payloads)
        publisher.publish("t", payloads, qos)

    @rule(index=st.integers(0, 3))
    def react(self, index: int) -> None:
        self.clients[index].react()

    @rule(count=st.sampled_from([1, 2, 3]))
    def commit(self, count: int) -> None:
        for _ in range(count):
            self.harness.commit()

    @rule(part=st.sampled_from([0.3, 0.6, 2.0]))
    def wait(self, part: float) -> None:
        self.harness.pass_time(self.harness.disk.commit_delay * part)

    @rule()
    def answers_come_in_time(self) -> None:
        """What was deferred is written after the commit delay, in one of the next batches."""
        for client in self.clients:
            client.react()
        accepted = [publisher for publisher in self.publishers if publisher.accepted]
        self.wait(1.0)
        self.commit(3)
        for publisher in accepted:
            publisher.react()
            assert publisher.unanswered(1) == publisher.unanswered(2) == []

    @rule()
    def crash(self) -> None:
        self.harness.crash()
        for client in self.clients:
            client.lose_connection()

    @rule(index=st.integers(0, 3))
    def drop(self, index: int) -> None:
        network = self.clients[index].network
        if network is not None:
            network.drop()
            self.clients[index].lose_connection()

    @rule(index=st.integers(0, 3))
    def connect(self, index: int) -> None:
        if self.clients[index].network is None:
            self.clients[index].connect(self.harness)

    def teardown(self) -> None:
        self.harness.commits = True
        self.reconnect_all()
        self.harness.settle()
        while any([client.react() for client in self.clients]):  # noqa: C419 - each of them
            self.harness.settle()
        for publisher in self.publishers:
            assert publisher.unacknowledged == {}
        for subscriber in self.subscribers:
            once = [each for each in subscriber.received if each in self.published[2]]
            assert sorted(once) == sorted(self.published[2])
            assert self.published[1] <= set(subscriber.received)
        tables = ("delivery", "message", "incoming")
        assert [self.harness.disk.count(table) for table in tables] == [0, 0, 0]


ExactlyOnce.TestCase.settings = settings(stateful_step_count=60)
TestExactlyOnce = pytest.mark.uncovered(ExactlyOnce.TestCase)
