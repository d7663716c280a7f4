"""What was on its way at a crash: DUP, packet identifiers and the steps of QoS 2 go on."""

import pytest

from gateway.mqtt.packets import Connect, PubComp, Publish, PubRec, PubRel
from gateway.mqtt.properties import Properties
from tests.support.broker.durable_broker import DurableHarness
from tests.support.broker.payloads import payloads


@pytest.fixture
def harness() -> DurableHarness:
    return DurableHarness()


def test_a_qos_2_publish_leaves_after_its_packet_identifier(harness: DurableHarness) -> None:
    client = harness.persistent()
    client.subscribe("t", 2)
    harness.commits = False
    harness.publish("t", b"x", 2)
    harness.publish("t", b"behind", 0)
    assert client.take() == []
    harness.commit()
    assert payloads(client.take()) == [b"x", b"behind"]
    harness.crash()
    harness.commits = True
    (again,) = harness.persistent().take()
    assert isinstance(again, Publish)
    assert (again.packet_id, again.dup) == (1, True)


def test_a_qos_2_publish_that_never_left_is_none_that_may_have(harness: DurableHarness) -> None:
    client = harness.persistent(receive_maximum=1)
    client.subscribe("t", 2)
    for number in range(2):
        harness.publish("t", b"%d" % number, 2)
    harness.publish("t", b"2", 1)
    harness.crash()
    packets = [packet for packet in harness.persistent().take() if isinstance(packet, Publish)]
    assert [packet.dup for packet in packets] == [True, False, False]


def test_a_pubrel_leaves_after_its_release(harness: DurableHarness) -> None:
    client = harness.persistent()
    client.subscribe("t", 2)
    harness.publish("t", b"x", 2)
    client.take()
    harness.commits = False
    client.send(PubRec(1), PubRec(1))
    assert client.take() == []
    harness.commit()
    assert client.take() == [PubRel(1), PubRel(1)]
    harness.commits = True
    harness.crash()
    client = harness.persistent()
    assert client.take() == [PubRel(1)]
    client.send(PubComp(1))
    assert harness.disk.count("delivery") == 0


def test_a_qos_2_message_is_sent_again_only_behind_its_commit(harness: DurableHarness) -> None:
    client = harness.persistent()
    client.subscribe("t", 2)
    harness.commits = False
    harness.publish("t", b"x", 2)
    client.drop()
    client = harness.open()
    client.send(Connect("c", clean_start=False, properties=Properties(session_expiry_interval=60)))
    harness.commit()
    assert payloads(client.take()) == [b"x"]
