"""What was read at once takes several turns where there is enough to write before its end."""

import pytest

from gateway.mqtt.codec.packet_codec import encode
from gateway.mqtt.packets import MQTT_5, Publish
from gateway.server import transport as transport_module
from gateway.server import turn as turn_module
from gateway.session import traffic
from tests.support.processes.server import HeldWriter, Server

MESSAGES = 8


@pytest.mark.asyncio(loop_factories=["gateway"])
async def test_messages_leave_while_more_is_handled(
    held: Server, held_writer: HeldWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport_module, "HANDLING", 60.0)  # no turn ends for the others
    client = await held.clients.connect("c")
    await client.subscribe("#")
    monkeypatch.setattr(traffic, "TURN_BYTES", 2_000)
    monkeypatch.setattr(turn_module, "_TURN_BYTES", 2_000)
    held.broker.traffic.begin_turn()
    messages = [Publish(f"a/{number}", bytes(1_500)) for number in range(MESSAGES)]
    before = held_writer.turns
    await client.send_bytes(b"".join(encode(each, MQTT_5) for each in messages))
    assert [await client.receive() for _ in messages] == messages
    assert held_writer.turns >= before + MESSAGES // 2
