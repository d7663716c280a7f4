"""Deliveries that clients were just sent: written only if no acknowledgement comes in time."""

import pytest

from gateway.mqtt.packets import (
    Disconnect,
    PubAck,
    Publish,
)
from gateway.mqtt.properties import Properties
from gateway.mqtt.reason_codes import ReasonCode
from tests.support.durable_broker import DurableHarness, away
from tests.support.memory_client import MemoryClient
from tests.support.payloads import payloads


@pytest.fixture
def harness() -> DurableHarness:
    return DurableHarness()


def acknowledge(client: MemoryClient) -> None:
    client.send(*(PubAck(each.packet_id) for each in client.take() if isinstance(each, Publish)))


def test_puback_leaves_when_everyone_has_acknowledged(harness: DurableHarness) -> None:
    receivers = [harness.persistent(name) for name in "ab"]
    for receiver in receivers:
        receiver.subscribe("t", 1)
    publisher = harness.connect("p")
    harness.commits = False
    publisher.send(*(Publish("t", b"x", 1, packet_id=each) for each in (1, 2)))
    assert publisher.take() == []
    acknowledge(receivers[0])
    assert publisher.take() == []
    assert harness.disk.wanted == harness.disk.commit_delay / 2
    acknowledge(receivers[1])
    assert publisher.take() == [PubAck(1), PubAck(2)]
    assert harness.disk.commit() == 0
    assert harness.disk.elided_rows == 2 + 4  # messages, and deliveries


def test_what_waits_behind_a_window_is_spared_too(harness: DurableHarness) -> None:
    receiver = harness.persistent("a", receive_maximum=2)
    receiver.subscribe("t", 1)
    publisher = harness.connect("p")
    harness.commits = False
    publisher.send(*(Publish("t", b"x", 1, packet_id=each) for each in range(1, 5)))
    assert harness.disk.wanted == harness.disk.commit_delay / 2
    acknowledge(receiver)
    acknowledge(receiver)
    assert len(publisher.take()) == 4
    assert harness.disk.commit() == 0


def test_what_waits_for_more_than_a_window_is_written_at_once(harness: DurableHarness) -> None:
    receiver = harness.persistent("a", receive_maximum=2)
    receiver.subscribe("t", 1)
    publisher = harness.connect("p")
    harness.commits = False
    publisher.send(*(Publish("t", b"x", 1, packet_id=each) for each in range(1, 6)))
    assert harness.disk.wanted == 0.0
    harness.commit()
    assert harness.disk.count("delivery") == 5  # also those before it, which were only lent
    harness.commit()  # what was lent waits for two batches all the same
    assert len(publisher.take()) == 5


def test_puback_keeps_its_place_among_others(harness: DurableHarness) -> None:
    away(harness, "away")
    receiver = harness.persistent("a")
    receiver.subscribe("t", 1)
    publisher = harness.connect("p")
    harness.commits = False
    publisher.send(Publish("away", b"x", 1, packet_id=1), Publish("t", b"x", 1, packet_id=2))
    publisher.send(Publish("nobody", b"x", 1, packet_id=3))
    assert harness.disk.wanted == 0.0  # somebody who is away must get it
    acknowledge(receiver)
    assert publisher.take() == []
    harness.commit()
    none = ReasonCode.NO_MATCHING_SUBSCRIBERS
    assert publisher.take() == [PubAck(1), PubAck(2), PubAck(3, none)]


def test_without_a_commit_delay_nothing_is_put_off(harness: DurableHarness) -> None:
    harness.disk.commit_delay = 0.0
    receiver = harness.persistent("a")
    receiver.subscribe("t", 1)
    publisher = harness.connect("p")
    harness.commits = False
    publisher.send(Publish("t", b"x", 1, packet_id=1))
    assert harness.disk.wanted == 0.0
    acknowledge(receiver)
    assert publisher.take() == []
    harness.commit()
    assert publisher.take() == [PubAck(1)]


@pytest.mark.parametrize("how", ["drop", "end"])
def test_what_was_lent_to_a_client_that_goes_is_due_at_once(
    harness: DurableHarness, how: str
) -> None:
    receiver = harness.persistent("a")
    receiver.subscribe("t", 1)
    publisher = harness.connect("p")
    harness.commits = False
    publisher.send(Publish("t", b"x", 1, packet_id=1))
    if how == "drop":
        receiver.drop()
        assert harness.disk.wanted == 0.0
        assert publisher.take() == []
        harness.commit()
        assert harness.disk.wanted is not None  # the batch that was promised, though it is empty
        harness.commit()
    else:  # nobody is owed it any more
        gone = Properties(session_expiry_interval=0)
        receiver.send(Disconnect(properties=gone))
    assert publisher.take() == [PubAck(1)]


def test_what_is_not_acknowledged_in_time_is_written(harness: DurableHarness) -> None:
    receiver = harness.persistent("a")
    receiver.subscribe("t", 1)
    publisher = harness.connect("p")
    harness.commits = False
    publisher.send(Publish("t", b"x", 1, packet_id=1))
    harness.commit()  # it was lent for two batches
    assert harness.disk.wanted is not None
    assert (publisher.take(), harness.disk.count("delivery")) == ([], 0)
    harness.commit()
    assert (publisher.take(), harness.disk.count("delivery")) == ([PubAck(1)], 1)
    acknowledge(receiver)
    harness.commit()
    assert (harness.disk.count("message"), harness.disk.count("delivery")) == (0, 0)


def test_what_is_being_written_waits_for_that(harness: DurableHarness) -> None:
    receiver = harness.persistent("a")
    receiver.subscribe("t", 1)
    publisher = harness.connect("p")
    harness.commits = False
    publisher.send(Publish("t", b"x", 1, packet_id=1))
    harness.commit()
    for gather in harness.disk.before_batch:
        gather()
    acknowledge(receiver)
    assert publisher.take() == []
    harness.commit()
    assert publisher.take() == [PubAck(1)]
    assert harness.disk.count("delivery") == 0


def test_a_message_that_somebody_else_must_get_is_written_whole(harness: DurableHarness) -> None:
    for name in ("a", "b", "c"):
        harness.persistent(name).subscribe("t", 1)
    harness.clients[1].drop()
    publisher = harness.connect("p")
    harness.commits = False
    publisher.send(Publish("t", b"x", 1, packet_id=1))
    assert harness.disk.wanted == 0.0
    harness.commit()
    assert publisher.take() == [PubAck(1)]
    assert (harness.disk.count("message"), harness.disk.count("delivery")) == (1, 3)
    harness.crash()
    harness.commits = True
    assert [payloads(harness.persistent(name).take()) for name in "abc"] == [[b"x"]] * 3
