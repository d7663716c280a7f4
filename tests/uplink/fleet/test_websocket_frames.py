"""Large packets in WebSocket frames, from a broker that heeds no Maximum Packet Size."""

import pytest
from websockets.asyncio.server import ServerConnection, serve
from websockets.typing import Subprotocol

from gateway.mqtt.codec.packet_codec import encode
from gateway.mqtt.packets import MQTT_3_1_1, ConnAck, Publish
from gateway.uplink.errors import LinkError
from gateway.uplink.fleet import websocket_stream
from gateway.uplink.fleet.client import FleetClient
from tests.support.disk.storage import until
from tests.support.fleet.uplinks import uplink_settings
from tests.support.ports import free_port


def _frame(*sizes: int) -> bytes:
    """Return packets with payloads of these sizes, for one frame."""
    return b"".join(encode(Publish(f"down/{size}", bytes(size)), MQTT_3_1_1) for size in sizes)


@pytest.mark.parametrize(
    ("frames", "taken", "left_out", "error"),
    [
        ([_frame(9_000, 20_000, 1), _frame(2)], [9_000, 1, 2], ["down/20000"], ""),
        ([_frame(5, 60_000), _frame(2)], [], [], "a WebSocket frame of more than 50000 bytes"),
    ],
)
async def test_what_a_frame_may_hold(
    monkeypatch: pytest.MonkeyPatch,
    frames: list[bytes],
    taken: list[int],
    left_out: list[str],
    error: str,
) -> None:
    monkeypatch.setattr(websocket_stream, "LEAST_FRAME", 50_000)

    async def speak(connection: ServerConnection) -> None:
        await connection.recv()
        await connection.send(encode(ConnAck(), MQTT_3_1_1))
        for frame in frames:
            await connection.send(frame)
        await connection.wait_closed()

    port = free_port()
    got: list[int] = []
    left: list[str] = []
    errors: list[str] = []
    settings = uplink_settings(url=f"ws://127.0.0.1:{port}", maximum_packet_size=10_000)
    client = FleetClient(settings, lambda: None, lambda _mid, _code: None, mqtt_5=False)
    client.listen(lambda publish, _acknowledge: got.append(len(publish.payload)))
    client.on_skipped = lambda topic, _why: left.append(topic)

    def ended() -> bool:
        try:
            client.service()
        except LinkError as raised:
            errors.append(str(raised))
        return bool(errors)

    async with serve(speak, "127.0.0.1", port, subprotocols=[Subprotocol("mqtt")]):
        client.connect(None)
        await until(lambda: ended() or got[-1:] == [2])
        await client.close()
    assert (got, left) == (taken, left_out)
    assert error in "".join(errors)
    assert bool(error) == bool(errors)
