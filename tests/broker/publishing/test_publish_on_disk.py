"""What is answered when a message is refused, or has to be on disk."""

import pytest

from gateway.broker.connecting.connection_info import ConnectionInfo
from gateway.mqtt.packets import MQTT_3_1_1, Disconnect, PingReq, PingResp, PubAck, Publish, PubRec
from gateway.mqtt.reason_codes import ReasonCode
from tests.support.broker.broker_harness import Harness
from tests.support.broker.inline import Inline
from tests.support.broker.publishing import subscriber
from tests.support.disk.held_disk import Disk

SUCCESS = ReasonCode.SUCCESS
NOBODY = ReasonCode.NO_MATCHING_SUBSCRIBERS


@pytest.fixture
def disk() -> Disk:
    return Disk()


def with_outbox(disk: Disk) -> tuple[Harness, Inline]:
    """Return a broker in which each message below `up/` makes a row."""
    harness = Harness(disk=disk)
    outbox = Inline("outbox", disk)
    harness.broker.subscribe_inline(outbox, ["up/#"])
    return harness, outbox


@pytest.mark.parametrize("qos", [1, 2])
def test_a_refused_message_reaches_nobody_and_may_come_again(harness: Harness, qos: int) -> None:
    receiver, outbox = subscriber(harness), Inline()
    harness.broker.subscribe_inline(outbox, ["up/#"])
    outbox.answer = ReasonCode.QUOTA_EXCEEDED
    publisher = harness.connect("p")
    answer = PubAck if qos == 1 else PubRec
    publisher.send(Publish("up/a", b"1", qos, retain=True, packet_id=3))
    assert publisher.take() == [answer(3, ReasonCode.QUOTA_EXCEEDED)]
    assert not receiver.take()
    assert len(harness.broker.retained) == 0
    outbox.answer = SUCCESS
    publisher.send(Publish("up/a", b"1", qos, packet_id=3))
    assert publisher.take() == [answer(3)]
    assert len(receiver.take()) == 1


def test_a_refused_qos_0_message_reaches_the_others(harness: Harness) -> None:
    receiver, outbox = subscriber(harness), Inline()
    harness.broker.subscribe_inline(outbox, ["up/#"])
    outbox.answer = ReasonCode.QUOTA_EXCEEDED
    harness.connect("p").send(Publish("up/a", b"1", retain=True))
    assert receiver.take() == [Publish("up/a", b"1")]
    assert len(harness.broker.retained) == 1


def test_mqtt_3_1_1_is_made_to_try_again(harness: Harness) -> None:
    receiver, outbox = subscriber(harness), Inline()
    harness.broker.subscribe_inline(outbox, ["up/#"])
    outbox.answer = ReasonCode.QUOTA_EXCEEDED
    publisher = harness.connect("p", MQTT_3_1_1)
    publisher.send(Publish("up/a", b"1", 1, packet_id=3), Publish("b"))
    assert publisher.closed()
    assert not publisher.take()
    assert not receiver.take()


def test_mqtt_3_1_1_is_not_made_to_try_again_what_is_never_taken(harness: Harness) -> None:
    control = Inline()
    harness.broker.subscribe_inline(control, ["$CONTROL/tidegate/#"])
    control.answer = ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR
    publisher = harness.connect("p", MQTT_3_1_1, info=ConnectionInfo(local=True))
    publisher.send(Publish("$CONTROL/tidegate/uplink", b"what?", 1, packet_id=3))
    assert publisher.take() == [PubAck(3)]
    assert not publisher.closed()


@pytest.mark.parametrize("qos", [1, 2])
def test_an_answer_waits_for_its_rows_and_nothing_else_does(disk: Disk, qos: int) -> None:
    harness, outbox = with_outbox(disk)
    receiver = subscriber(harness)
    publisher = harness.connect("p")
    publisher.send(PingReq(), Publish("up/a", b"1", qos, packet_id=3), PingReq())
    assert len(outbox.taken) == 1
    assert publisher.take() == [PingResp()]
    assert len(receiver.take()) == 1
    harness.commit()
    assert publisher.take() == [PubAck(3) if qos == 1 else PubRec(3), PingResp()]


def test_answers_keep_their_order(disk: Disk) -> None:
    harness, _ = with_outbox(disk)
    publisher = harness.connect("p")
    publisher.send(
        Publish("up/a", qos=1, packet_id=1),
        Publish("b", qos=1, packet_id=2),
        Publish("up/a", qos=2, packet_id=3),
    )
    assert not publisher.take()
    harness.commit()
    assert publisher.take() == [PubAck(1), PubAck(2, NOBODY), PubRec(3)]


def test_a_repeated_qos_2_message_waits_for_the_rows_of_the_first(disk: Disk) -> None:
    harness, outbox = with_outbox(disk)
    first = harness.persistent("p")
    first.send(Publish("up/a", qos=2, packet_id=3))
    first.drop()
    second = harness.persistent("p")
    second.send(Publish("up/a", qos=2, dup=True, packet_id=3))
    assert not second.take()
    assert len(outbox.taken) == 1
    harness.commit()
    assert second.take() == [PubRec(3)]


def test_a_client_that_left_still_gets_its_answer(disk: Disk) -> None:
    harness, _ = with_outbox(disk)
    publisher = harness.connect("p")
    publisher.send(Publish("up/a", qos=1, packet_id=3), Disconnect())
    assert not publisher.closed()
    assert "p" in harness.broker.clients
    harness.commit()
    assert publisher.take() == [PubAck(3)]
    assert publisher.closed()
    assert not harness.broker.clients
