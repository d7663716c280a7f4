"""The end of connections on which nothing comes (MQTT 5, section 3.1.2.10)."""

from typing import TYPE_CHECKING

from gateway.broker.client import KEEP_ALIVE_TOLERANCE, Client
from gateway.broker.instant import Instant
from gateway.mqtt.reason_codes import ReasonCode

if TYPE_CHECKING:
    from gateway.broker.broker import Broker


def watch_keep_alive(broker: "Broker", client: Client, instant: Instant) -> None:
    """Close the connection after one and a half intervals of silence [MQTT-3.1.2-22]."""
    if client.keep_alive:
        due = instant.monotonic + client.keep_alive * KEEP_ALIVE_TOLERANCE
        broker.deadlines.set(client, due, broker.on_silence)
    else:
        broker.deadlines.discard(client)


def end_if_silent(broker: "Broker", client: Client, instant: Instant) -> None:
    """Close the connection, or look again when the client will have been silent for too long."""
    silence = client.keep_alive * KEEP_ALIVE_TOLERANCE
    due = client.last_received + silence
    if due <= instant.monotonic:
        client.disconnect(ReasonCode.KEEP_ALIVE_TIMEOUT, f"nothing received for {silence} s")
    else:
        broker.deadlines.set(client, due, broker.on_silence)
