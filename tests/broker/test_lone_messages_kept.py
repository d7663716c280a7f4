"""Messages that come alone for a session that is kept: on disk only if that is needed."""

from collections.abc import Callable

import pytest

from gateway.broker.durability_classes import DurabilityEntry
from gateway.broker.settings import BrokerSettings
from gateway.mqtt.encode import encode
from gateway.mqtt.packets import MQTT_3_1_1, MQTT_5, Connect, Disconnect, PingReq, PubAck, Publish
from gateway.mqtt.properties import Properties
from gateway.session.inflight import MAXIMUM_BYTES
from tests.support.durable_broker import DurableHarness, away
from tests.support.lone_pair import TOPIC, Pair
from tests.support.payloads import payloads

KEPT = Properties(session_expiry_interval=3600)


class KeptPair(Pair):
    """A publisher with a way to a persistent session; nothing is written unless `commit` is."""

    def __init__(self, version: int = MQTT_5, settings: BrokerSettings | None = None) -> None:
        self.durable = DurableHarness(settings)
        super().__init__(version, self.durable, persistent=True)
        self.durable.commits = False
        self.disk = self.durable.disk
        for _ in range(2):
            self.durable.commit()
        assert self.disk.wanted is None

    def answers(self) -> bytes:
        """Return what the publisher was sent, at once and later."""
        written = b"".join(self.wires[1].written)
        later = b"".join(encode(each, self.version) for each in self.publisher.take())
        return written + later

    def answer(self, *packet_ids: int) -> bytes:
        return b"".join(encode(PubAck(each), self.version) for each in packet_ids)

    def wanted(self) -> float | None:
        """Return by when a commit is wanted, None if it is not."""
        return self.disk.wanted

    def rows(self) -> tuple[int, int]:
        return self.disk.count("message"), self.disk.count("delivery")


@pytest.fixture
def pair() -> KeptPair:
    return KeptPair()


@pytest.mark.parametrize("version", [MQTT_3_1_1, MQTT_5])
@pytest.mark.parametrize("size", [4, 900])
def test_its_puback_leaves_with_that_of_the_receiver(version: int, size: int) -> None:
    pair = KeptPair(version)
    broker, session = pair.harness.broker, pair.harness.session("subscriber")
    traffic, packets, elided = broker.traffic, broker.packets(), pair.disk.elided_rows
    sent, received = traffic.network_sent, traffic.network_received
    data = pair.encoded(b"x" * size, 7)
    assert pair.goes(data)
    assert pair.written() == [[pair.encoded(b"x" * size, 3)], []]
    assert pair.publisher.client.connection.unacknowledged == 1
    pair.subscriber.send(PubAck(3))
    assert pair.written()[1] == [pair.answer(7)]
    assert broker.packets() == (packets[0] + 2, packets[1] + 2)
    assert traffic.network_sent == sent + len(data) + 4
    assert traffic.network_received == received + len(data) + 4
    assert pair.publisher.client.connection.unacknowledged == 0
    assert session.inflight.room == (session.inflight.limit, MAXIMUM_BYTES)
    assert (pair.wanted(), pair.disk.elided_rows) == (None, elided + 2)
    pair.durable.pass_time(1.0)
    assert (pair.wanted(), pair.rows()) == (None, (0, 0))


def test_nothing_is_gathered_while_it_may_be_acknowledged(pair: KeptPair) -> None:
    delay = pair.disk.commit_delay
    assert pair.goes()
    pair.durable.pass_time(delay * 0.4)
    assert (pair.wanted(), pair.disk.mark()) == (None, 0)
    pair.subscriber.send(PubAck(3))
    assert pair.goes(pair.encoded(b"2", 8))
    pair.durable.pass_time(delay * 0.4)  # more than half of it since the first one came
    assert pair.wanted() is None
    assert pair.goes(pair.encoded(b"3", 9))
    pair.durable.pass_time(delay * 0.2)
    assert pair.wanted() == 0.0  # for the second
    pair.durable.commit()
    pair.durable.commit()
    assert (pair.answers(), pair.rows()) == (pair.answer(7, 8, 9), (2, 2))


def test_only_what_is_old_makes_a_batch_begin(pair: KeptPair) -> None:
    delay = pair.disk.commit_delay
    assert pair.goes()
    pair.durable.pass_time(delay * 0.2)
    assert pair.goes(pair.encoded(b"2", 8))
    pair.subscriber.send(PubAck(3))
    pair.durable.pass_time(delay * 0.4)  # the first would be old
    assert (pair.wanted(), pair.answers()) == (None, pair.answer(7))
    pair.durable.pass_time(delay * 0.2)
    assert pair.wanted() == 0.0


def test_what_is_not_acknowledged_in_time_is_written(pair: KeptPair) -> None:
    for number in (7, 8):
        assert pair.goes(pair.encoded(b"%d" % number, number))
    pair.durable.pass_time(pair.disk.commit_delay)
    assert pair.wanted() == 0.0
    pair.durable.commit()
    assert (pair.answers(), pair.rows()) == (b"", (0, 0))
    assert pair.wanted() == pair.disk.commit_delay / 2
    pair.durable.commit()
    assert (pair.answers(), pair.rows()) == (pair.answer(7, 8), (2, 2))
    pair.durable.commits = True
    pair.durable.crash()
    again = pair.durable.persistent("subscriber")
    assert payloads(again.take()) == [b"7", b"8"]


@pytest.mark.parametrize("opened", [False, True])
def test_what_is_acknowledged_after_its_batch_was_closed_is_not_written(
    pair: KeptPair, opened: bool
) -> None:
    assert pair.goes()
    if opened:
        pair.durable.pass_time(pair.disk.commit_delay)
    pair.durable.commit()
    pair.subscriber.send(PubAck(3))
    assert pair.answers() == pair.answer(7)
    pair.durable.commit()
    assert pair.rows() == (0, 0)


def test_acknowledgements_that_come_together_let_all_go(pair: KeptPair) -> None:
    elided = pair.disk.elided_rows
    for number in (7, 8, 9):
        assert pair.goes(pair.encoded(b"x", number))
    pair.subscriber.send(*(PubAck(number) for number in (3, 4)))
    assert pair.answers() == pair.answer(7, 8)
    pair.subscriber.send(PubAck(5))
    assert pair.answers() == pair.answer(9)
    assert pair.disk.elided_rows == elided + 6


def test_it_leaves_at_the_turn_s_end_where_others_are_ready(pair: KeptPair) -> None:
    assert pair.goes()
    pair.harness.alone = False
    pair.subscriber.send(PubAck(3))
    assert pair.wires[1].written == []
    assert pair.answers() == pair.answer(7)


def test_answers_keep_their_order(pair: KeptPair) -> None:
    for number in (7, 8):
        assert pair.goes(pair.encoded(b"x", number))
    pair.publisher.send(Publish("nobody", b"x", 1, packet_id=9))
    pair.subscriber.send(PubAck(4))
    assert pair.answers() == b""
    pair.subscriber.send(PubAck(3))
    answers = pair.answers()
    assert answers.startswith(pair.answer(7, 8))
    assert answers[8:].startswith(b"\x40\x03\x00\x09")


def test_no_later_message_is_written_without_it(pair: KeptPair) -> None:
    """[MQTT-4.6.0-6]: its publisher would send it again, behind the later one."""
    pair.durable.commits = True
    away(pair.durable, "to/both")
    pair.subscriber.subscribe("to/both", 1)
    for number in (3, 4):  # find the way again
        pair.publisher.send(Publish(TOPIC, b"x", 1, packet_id=number))
        pair.subscriber.send(PubAck(number))
    other = pair.harness.connect("other")
    pair.durable.commits = False
    assert pair.goes(pair.encoded(b"first", 7))
    other.send(Publish("to/both", b"later", 1, packet_id=1))
    pair.durable.commit()
    assert PubAck(1) in other.take()
    pair.durable.commits = True
    pair.durable.crash()
    again = pair.durable.persistent("subscriber")
    assert payloads(again.take()) == [b"first", b"later"]


def dropped(pair: KeptPair) -> None:
    pair.subscriber.drop()


def taken_over(pair: KeptPair) -> None:
    pair.durable.open().send(Connect("subscriber", MQTT_5, clean_start=False, properties=KEPT))


@pytest.mark.parametrize("leave", [dropped, taken_over])
def test_what_was_lent_to_a_client_that_goes_is_due_at_once(
    pair: KeptPair, leave: Callable[[KeptPair], None]
) -> None:
    assert pair.goes()
    leave(pair)
    assert (pair.wanted(), pair.answers()) == (0.0, b"")
    pair.durable.commit()
    pair.durable.commit()
    assert (pair.answers(), pair.rows()) == (pair.answer(7), (1, 1))


def test_what_was_lent_to_a_session_that_ends_is_owed_to_nobody(pair: KeptPair) -> None:
    assert pair.goes()
    pair.subscriber.send(Disconnect(properties=Properties(session_expiry_interval=0)))
    assert pair.answers() == pair.answer(7)
    pair.durable.commit()
    assert pair.rows() == (0, 0)


def test_a_publisher_that_is_gone_is_not_written_to(pair: KeptPair) -> None:
    assert pair.goes()
    pair.publisher.drop()
    pair.subscriber.send(PubAck(3))
    assert pair.written()[1] == []
    assert pair.rows() == (0, 0)


def test_a_publisher_that_says_goodbye_still_gets_its_answer(pair: KeptPair) -> None:
    assert pair.goes()
    pair.publisher.send(Disconnect())
    assert not pair.publisher.closed()
    pair.subscriber.send(PubAck(3))
    assert pair.answers() == pair.answer(7)
    assert pair.publisher.closed()


def test_nothing_goes_while_the_disk_takes_no_more(pair: KeptPair) -> None:
    pair.disk.full = True
    assert not pair.goes()
    pair.disk.full = False
    assert pair.goes()


def test_what_waits_for_its_class_waits_as_long() -> None:
    pair = KeptPair(settings=BrokerSettings(durability=(DurabilityEntry(0.2, topic_filter="#"),)))
    delay = pair.disk.commit_delay
    assert pair.goes()
    pair.durable.pass_time(delay)
    assert pair.wanted() == pytest.approx(0.2 - delay)
    pair.durable.commit()
    pair.durable.commit()
    assert (pair.answers(), pair.rows()) == (pair.answer(7), (1, 1))


def test_what_is_kept_in_memory_alone_waits_for_nothing() -> None:
    pair = KeptPair(settings=BrokerSettings(durability=(DurabilityEntry(None, topic_filter="#"),)))
    assert pair.goes()
    assert pair.answers() == pair.answer(7)
    pair.subscriber.send(PubAck(3))
    assert (len(pair.harness.session("subscriber").inflight), pair.rows()) == (0, (0, 0))


def test_what_is_asked_for_becomes_a_delivery_like_any_other(pair: KeptPair) -> None:
    assert pair.goes()
    session = pair.harness.session("subscriber")
    assert [each.delivery.message.payload for each in session.inflight] == [b"21.5"]
    assert pair.wanted() == pair.disk.commit_delay / 2
    pair.publisher.send(PingReq())
    pair.subscriber.send(PubAck(3))
    assert pair.answers().startswith(pair.answer(7))
    for _ in range(2):
        pair.durable.commit()
    assert pair.rows() == (0, 0)
