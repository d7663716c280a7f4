"""What goes the lone way at QoS 1 to a subscription at QoS 0 is answered, and sent without more."""

import pytest

from gateway.mqtt.encode import encode
from gateway.mqtt.packets import MQTT_3_1_1, MQTT_5, PubAck, Publish
from tests.support.broker_harness import Harness
from tests.support.durable_broker import DurableHarness
from tests.support.lone_pair import SHORT
from tests.support.wire import Wire

TOPIC = "a/b"
OVERHEAD = len(encode(Publish(TOPIC, b"", 1, packet_id=1), MQTT_3_1_1))


@pytest.mark.parametrize("version", [MQTT_3_1_1, MQTT_5])
@pytest.mark.parametrize("size", [0, 4, *range(SHORT - OVERHEAD - 1, SHORT - OVERHEAD + 5), 20_000])
@pytest.mark.parametrize("make", [Harness, DurableHarness])
def test_it_leaves_without_a_packet_identifier(
    version: int, size: int, make: type[Harness]
) -> None:
    harness = make()
    harness.alone = True
    subscriber, publisher = (harness.persistent(name, version) for name in ("c", "publisher"))
    subscriber.subscribe(TOPIC)
    publisher.send(Publish(TOPIC, b"first", 1, packet_id=1))
    publisher.send(Publish(TOPIC, b"second", 1, packet_id=2))
    way = publisher.client.numbered_way
    assert way is not None
    wires = []
    for client in (subscriber, publisher):
        client.client.connection.output.transport = wire = Wire()
        wires.append(wire)
    broker, payload = harness.broker, b"x" * size
    packets, sent = broker.packets(), broker.traffic.network_sent
    data = encode(Publish(TOPIC, payload, 1, packet_id=7), version)
    assert way.pass_on(data, True, harness.now, harness.wall)
    plain, answer = encode(Publish(TOPIC, payload), version), encode(PubAck(7), version)
    assert [wire.written for wire in wires] == [[plain], [answer]]
    assert not len(harness.session("c").inflight)
    assert broker.packets() == (packets[0] + 1, packets[1] + 2)
    assert broker.traffic.network_sent == sent + len(plain) + len(answer)
