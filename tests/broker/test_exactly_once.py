"""Crashes between any two steps: nothing acknowledged is lost, and QoS 2 comes exactly once."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from gateway.broker.settings import BrokerSettings
from tests.support.durable_broker import DurableHarness
from tests.support.exact_clients import ExactClient, ExactPublisher, ExactSubscriber

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
    @rule(data=st.data(), qos=st.sampled_from([1, 2]))
    def publish(self, data: st.DataObject, qos: int) -> None:
        publisher = data.draw(
            st.sampled_from([each for each in self.publishers if each.may_publish])
        )
        payload = b"%d" % sum(map(len, self.published.values()))
        self.published[qos].add(payload)
        publisher.publish("t", payload, qos)

    @rule(index=st.integers(0, 3))
    def react(self, index: int) -> None:
        self.clients[index].react()

    @rule()
    def commit(self) -> None:
        self.harness.commit()

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


ExactlyOnce.TestCase.settings = settings(max_examples=150, stateful_step_count=60, deadline=None)
TestExactlyOnce = ExactlyOnce.TestCase
