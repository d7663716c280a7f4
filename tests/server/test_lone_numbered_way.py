"""QoS 1 messages that come alone go through sockets, and so do their acknowledgements."""

import pytest

from gateway.mqtt.packets import PubAck, Publish
from tests.support.clocks import ManualClock
from tests.support.server import Server
from tests.support.storage import until


@pytest.mark.parametrize("clock", [ManualClock()], ids=["manual"])
async def test_messages_and_acknowledgements_come_through_and_are_signs_of_life(
    held: Server, clock: ManualClock
) -> None:
    subscriber = await held.clients.connect("subscriber")
    await subscriber.subscribe("a", 1)
    publisher = await held.clients.connect("publisher")
    publishes, receives = (held.broker.clients[name] for name in ("publisher", "subscriber"))
    session = receives.session
    assert session is not None
    for number in range(1, 5):
        clock.step(1.0)
        await publisher.send(Publish("a", b"%d" % number, 1, packet_id=100 + number))
        assert await subscriber.receive() == Publish("a", b"%d" % number, 1, packet_id=number)
        assert await publisher.receive() == PubAck(100 + number)
        assert publishes.last_received == clock.monotonic()
        assert (publishes.numbered_way is not None) == (number > 1)
        await subscriber.send(PubAck(number))
        await until(lambda: not len(session.inflight))
        assert receives.last_received == clock.monotonic()
    assert publishes.connection.unacknowledged == 0
    assert held.broker.packets() == (2 + 1 + 8, 2 + 1 + 8)
    message = Publish("a", b"5", 1, packet_id=9)
    clock.step(1.0)
    await publisher.send(message)
    assert await subscriber.receive() == Publish("a", b"5", 1, packet_id=5)
    (kept,) = session.inflight
    assert kept.delivery.message.arrived == clock.monotonic()
    assert kept.delivery.message.received_at == clock.wall_ms()
