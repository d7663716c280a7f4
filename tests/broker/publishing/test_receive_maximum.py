"""Our Receive Maximum (MQTT 5, sections 3.3.4 and 4.9): counted until the answer has left."""

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from gateway.mqtt.packets import MQTT_3_1_1, Disconnect, PubAck, PubComp, Publish, PubRec, PubRel
from gateway.mqtt.reason_codes import ReasonCode
from gateway.settings.broker import BrokerSettings
from tests.support.broker.broker_harness import Harness
from tests.support.broker.inline import Inline
from tests.support.broker.memory_client import MemoryClient
from tests.support.broker.payloads import payloads
from tests.support.broker.publishing import batch, codes, subscriber
from tests.support.disk.held_disk import Disk

MAXIMUM = 3


def make_harness(disk: Disk | None = None) -> Harness:
    harness = Harness(BrokerSettings(receive_maximum=MAXIMUM), disk)
    harness.broker.subscribe_inline(Inline("outbox", disk), ["up/#"])
    return harness


@pytest.fixture
def harness() -> Harness:
    return make_harness()


def publishes(count: int, qos: int, first: int = 1, topic: str = "up/a") -> list[Publish]:
    return [Publish(topic, b"x", qos, packet_id=first + number) for number in range(count)]


def refused(client: MemoryClient) -> bool:
    """Return whether the client was disconnected for exceeding the maximum."""
    packets = client.take()
    last = packets[-1] if packets else None
    exceeded = isinstance(last, Disconnect) and last.reason_code == 0x93
    assert exceeded == client.closed()
    return exceeded


def test_packets_of_one_read_cannot_have_seen_their_answers(harness: Harness) -> None:
    client = harness.connect()
    client.send(*publishes(MAXIMUM + 1, 1))
    assert refused(client)


def test_an_answer_that_the_client_does_not_read_has_not_been_sent(harness: Harness) -> None:
    client = harness.connect()
    client.reads = False
    for packet in publishes(MAXIMUM + 1, 1):
        client.send(packet)
    client.reads = True
    harness.settle()
    assert refused(client)


def test_qos_0_counts_for_nothing(harness: Harness) -> None:
    client = harness.connect()
    client.send(*publishes(MAXIMUM, 1), *publishes(10, 0))
    assert not refused(client)


def test_a_pubrec_that_refuses_gives_its_place_back(harness: Harness) -> None:
    client = harness.connect()
    for packet in publishes(10, 2, topic="$SYS/x"):
        client.send(packet)
    answers = [packet.reason_code for packet in client.take() if isinstance(packet, PubRec)]
    assert answers == [ReasonCode.NOT_AUTHORIZED] * 10
    assert not client.closed()


def test_a_new_connection_begins_to_count_anew(harness: Harness) -> None:
    harness.persistent().send(*publishes(MAXIMUM, 2))
    client = harness.persistent()
    client.send(PubRel(1), PubRel(1))
    assert client.take() == [PubComp(1), PubComp(1, ReasonCode.PACKET_IDENTIFIER_NOT_FOUND)]
    assert client.client.connection.unacknowledged == 0
    client.send(*publishes(2, 2, first=2), PubRel(2), *publishes(1, 2, first=5))
    assert client.client.connection.unacknowledged == 2
    client.send(*publishes(2, 2, first=6))
    assert refused(client)


def test_mqtt_3_1_1_knows_no_maximum(harness: Harness) -> None:
    client = harness.connect("old", MQTT_3_1_1)
    client.send(*publishes(10, 1), *publishes(10, 2))
    assert len(client.take()) == 20
    assert not client.closed()


@pytest.mark.parametrize("qos", [1, 2])
@pytest.mark.parametrize("retain", [False, True])
def test_our_receive_maximum_ends_a_batch_and_then_the_connection(
    *, qos: int, retain: bool
) -> None:
    harness = Harness(BrokerSettings(receive_maximum=4))
    receiver, publisher = subscriber(harness), harness.connect("publisher")
    packets = batch(6, qos)
    for packet in packets:
        packet.retain = retain
    publisher.send(*packets)
    *answers, last = publisher.take()
    assert answers == [(PubAck if qos == 1 else PubRec)(number) for number in range(1, 5)]
    assert isinstance(last, Disconnect)
    assert last.reason_code == ReasonCode.RECEIVE_MAXIMUM_EXCEEDED
    assert payloads(receiver.take()) == [b"1", b"2", b"3", b"4"]


def test_the_receive_maximum_counts_no_repetition_inside_a_batch() -> None:
    harness = Harness(BrokerSettings(receive_maximum=3))
    publisher = harness.connect("publisher")
    for _ in range(3):
        publisher.send(*batch(3, 2))
    assert codes(publisher) == [ReasonCode.NO_MATCHING_SUBSCRIBERS] * 3 + [ReasonCode.SUCCESS] * 6
    assert not publisher.closed()


class ReceiveMaximum(RuleBasedStateMachine):
    """A client and a plain model of what is not acknowledged, whatever comes in what order."""

    def __init__(self) -> None:
        super().__init__()
        self.disk = Disk()
        self.harness = make_harness(self.disk)
        self.client = self.harness.connect()
        self.open: dict[int, int] = {}  # packet identifier to QoS
        self.ended: list[int] = []  # their answers wait for the commit
        self.next = 0

    @rule(qos=st.sampled_from([1, 2]))
    @precondition(lambda self: len(self.open) + len(self.ended) < MAXIMUM)
    def publish(self, qos: int) -> None:
        self.next += 1
        self.client.send(Publish("up/a", b"x", qos, packet_id=self.next))
        if qos == 1:
            self.ended.append(self.next)
        else:
            self.open[self.next] = qos
        self.check()

    @rule()
    def repeat(self) -> None:
        for packet_id in self.open:
            self.client.send(Publish("up/a", b"x", 2, dup=True, packet_id=packet_id))
        self.check()

    @rule()
    @precondition(lambda self: self.open)
    def release(self) -> None:
        packet_id = next(iter(self.open))
        del self.open[packet_id]
        self.client.send(PubRel(packet_id))
        self.ended.append(packet_id)
        if not self.disk.pending_rows:
            self.ended.clear()  # nothing is in front of the PUBCOMP
        self.check()

    @rule()
    def commit(self) -> None:
        self.harness.commit()
        self.ended.clear()
        self.check()

    def check(self) -> None:
        assert not self.client.closed()
        assert self.client.client.connection.unacknowledged == len(self.open) + len(self.ended)

    def teardown(self) -> None:
        left = MAXIMUM - len(self.open) - len(self.ended)
        self.client.send(*publishes(left + 1, 2, first=self.next + 1))
        self.harness.commit()
        assert refused(self.client)


TestReceiveMaximum = pytest.mark.uncovered(ReceiveMaximum.TestCase)
