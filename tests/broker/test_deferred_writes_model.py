"""Deferred writes, in any order of events and crashes."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from gateway.mqtt.packets import PubAck, Publish
from tests.support.durable_broker import DurableHarness

TOPIC = "t"
PUBLISHERS = ("p", "q")
DELAY = 0.005


class DeferredWritesMachine(RuleBasedStateMachine):
    """Two clients publish to a third, whose session must lose nothing that was answered.

    Messages are numbers. What is `owed` was answered and not acknowledged.
    """

    def __init__(self) -> None:
        super().__init__()
        self.harness = DurableHarness()
        self.last = 0
        self.sent: dict[str, list[tuple[int, int]]] = {name: [] for name in PUBLISHERS}
        self.answered: set[int] = set()
        self.acknowledged: set[int] = set()
        self.received: list[tuple[int, int]] = []  # packet identifiers and messages
        self.connect()
        self.harness.commits = True
        self.subscriber.subscribe(TOPIC, 1)
        self.harness.commits = False

    def connect(self) -> None:
        """Connect everyone anew; a start of the gateway is over when that is on disk."""
        self.harness.commits = True
        self.subscriber = self.harness.persistent("s")
        self.publishers = {name: self.harness.connect(name) for name in PUBLISHERS}
        self.harness.commits = False

    def read(self) -> None:
        for name, client in self.publishers.items():
            for packet in client.take():
                assert isinstance(packet, PubAck)
                packet_id, message = self.sent[name].pop(0)  # in the order of their sending
                assert packet.packet_id == packet_id
                self.answered.add(message)
        for publish in self.subscriber.take():
            assert isinstance(publish, Publish)
            self.received.append((publish.packet_id, int(publish.payload)))

    @rule(name=st.sampled_from(PUBLISHERS), count=st.sampled_from([1, 1, 2, 3]))
    def publish(self, name: str, count: int) -> None:
        self.publishers[name].send(*(self.next(name) for _ in range(count)))
        self.read()

    def next(self, name: str) -> Publish:
        """Return the next message of a publisher."""
        self.last += 1
        packet_id = self.last % 0xFFFF + 1
        self.sent[name].append((packet_id, self.last))
        return Publish(TOPIC, b"%d" % self.last, 1, packet_id=packet_id)

    @precondition(lambda self: self.received)
    @rule(data=st.data(), count=st.sampled_from([1, 1, 2]))
    def acknowledge(self, data: st.DataObject, count: int) -> None:
        place = data.draw(st.sampled_from([0, len(self.received) - 1]))
        taken = self.received[place : place + count]
        del self.received[place : place + count]
        self.subscriber.send(*(PubAck(packet_id) for packet_id, _ in taken))
        self.acknowledged.update(message for _, message in taken)
        self.read()

    @rule(count=st.sampled_from([1, 2, 3]))
    def commit(self, count: int) -> None:
        for _ in range(count):
            self.harness.commit()
        self.read()

    @rule(part=st.sampled_from([0.3, 0.6, 2.0]))
    def wait(self, part: float) -> None:
        self.harness.pass_time(DELAY * part)
        self.read()

    @rule()
    def answers_come_in_time(self) -> None:
        self.harness.pass_time(DELAY)
        for _ in range(3):
            self.harness.commit()
        self.read()
        assert not any(self.sent.values())

    @rule()
    def come_back(self) -> None:
        self.subscriber.drop()
        self.read()
        self.received.clear()
        self.harness.commits = True
        self.subscriber = self.harness.persistent("s")
        self.harness.commits = False
        self.read()

    @rule()
    def crash(self) -> None:
        self.harness.commits = True
        self.harness.crash()
        self.sent = {name: [] for name in PUBLISHERS}
        self.received.clear()
        self.connect()
        self.read()
        again = [message for _, message in self.received]
        assert again == sorted(again)
        assert self.answered - self.acknowledged <= set(again)
        # what came again was perhaps not answered: it is on disk now, and owed like any other
        self.answered |= set(again)
        self.acknowledged -= set(again)

    @invariant()
    def what_was_answered_is_safe(self) -> None:
        received = {message for _, message in self.received}
        assert self.answered - self.acknowledged <= received | self.waiting()

    def waiting(self) -> set[int]:
        """Return the messages in the session's queue."""
        spans = list(self.harness.session("s").queue)
        return {
            int(span.publication.packets.one(number))
            for span in spans
            for number in range(span.first, span.first + span.count)
        }


DeferredWritesMachine.TestCase.settings = settings(
    max_examples=80, stateful_step_count=40, deadline=None
)
TestDeferredWritesAgainstModel = DeferredWritesMachine.TestCase
