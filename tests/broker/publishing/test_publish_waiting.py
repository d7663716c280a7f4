"""Batches behind a window, and for clients that are away."""

import pytest

from gateway.mqtt.packets import MQTT_3_1_1, PubAck, PubComp, PubRec
from gateway.settings.broker import BrokerSettings
from tests.support.broker.broker_harness import Harness
from tests.support.broker.durable_broker import DurableHarness
from tests.support.broker.payloads import payloads
from tests.support.broker.publishing import acknowledge, batch, published
from tests.support.table import table


@pytest.mark.uncovered
def test_packet_identifiers_come_round() -> None:
    harness = Harness(BrokerSettings(maximum_inflight=60_000))
    receiver, publisher = (harness.connect(name, MQTT_3_1_1) for name in "cp")
    receiver.subscribe("#", 1)
    seen: list[int] = []
    for _ in range(300):
        publisher.send(*batch(500, 1))
        numbers = [each.packet_id for each in published(receiver)]
        kept = numbers[-1:] if not seen else []  # the first read's last is never acknowledged
        receiver.send(*(PubAck(number) for number in numbers if number not in kept))
        seen += numbers
    stuck = seen[499]
    assert stuck in seen[:500]
    assert stuck not in seen[500:]
    assert 0 not in seen
    assert len(harness.session("c").inflight) == 1


# --- who is away ----------------------------------------------------------------------------


def _leave(harness: Harness, name: str, qos: int) -> None:
    client = harness.persistent(name)
    client.subscribe("a/#", qos)
    client.drop()


@pytest.mark.uncovered
@table("make", [Harness, DurableHarness])
@table("n", [1, 2, 30])
@table("qos", [1, 2])
def test_a_batch_waits_for_everyone_who_is_away(make: type[Harness], qos: int, n: int) -> None:
    harness = make()
    for name in ("one", "two"):
        _leave(harness, name, qos)
    _leave(harness, "at QoS 0", 0)
    publisher = harness.connect("publisher")
    for start in range(1, 31, n):
        publisher.send(*batch(n, qos, start))
    publisher.drop()
    assert len(harness.session("one").queue) == 30
    assert len(harness.session("at QoS 0").queue) == 0
    for name in ("one", "two"):
        harness.persistent(name).drop()  # which begins with it
    memory = harness.broker.queue_memory
    assert memory.deliveries == 60
    for name in ("one", "two"):
        client = harness.persistent(name)
        assert payloads(client.inbox) == [each.payload for each in batch(30, qos)]
        if qos == 1:
            acknowledge(client)
        else:
            client.send(*(PubRec(number) for number in range(1, 31)))
            client.send(*(PubComp(number) for number in range(1, 31)))
    assert (memory.deliveries, memory.messages, memory.bytes, memory.disk_bytes) == (0, 0, 0, 0)


@pytest.mark.parametrize("qos", [1, 2])
def test_a_batch_for_who_is_away_is_answered_when_it_is_on_disk(qos: int) -> None:
    harness = DurableHarness()
    _leave(harness, "away", qos)
    here = harness.persistent("here")
    here.subscribe("a/b", 1)
    publisher = harness.connect("publisher")
    harness.commits = False
    publisher.send(*batch(3, qos))
    acknowledge(here)  # which helps nobody who is away
    assert publisher.take() == []
    for _ in range(2):  # at most: what was deferred for those who are here goes with the second
        harness.commit()
    assert len(publisher.take()) == 3
    harness.crash()
    harness.commits = True
    assert payloads(harness.persistent("away").take()) == [b"1", b"2", b"3"]
