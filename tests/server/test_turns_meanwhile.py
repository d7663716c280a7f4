"""What was read at once takes several turns where there is enough to write before its end."""

import pytest

from gateway.broker.retained_runs import ANSWERED_AT_ONCE
from gateway.mqtt.encode import encode
from gateway.mqtt.packets import MQTT_5, PubAck, Publish
from gateway.server import transport as transport_module
from tests.support.server import HeldWriter, Server


@pytest.mark.asyncio(loop_factories=["gateway"])
async def test_acknowledgements_leave_while_more_is_handled(
    held: Server, held_writer: HeldWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport_module, "SLICE", 60.0)  # no turn ends for the others
    client = await held.clients.connect("c")
    count = 2 * ANSWERED_AT_ONCE + 1
    messages = [
        Publish(f"a/{number}", b"1", qos=1, retain=True, packet_id=number)
        for number in range(1, count + 1)
    ]
    before = held_writer.turns
    await client.send_bytes(b"".join(encode(each, MQTT_5) for each in messages))
    acknowledged = [await client.receive() for _ in messages]
    assert [each.packet_id for each in acknowledged if isinstance(each, PubAck)] == [
        each.packet_id for each in messages
    ]
    assert held_writer.turns == before + 3
