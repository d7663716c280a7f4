"""Which function handles which packet: the broker's map on one screen."""

from collections.abc import Callable
from typing import Any

from gateway.broker.client import HELD, Client, Pieces, session_of
from gateway.broker.connecting.connect import handle_connect, handle_disconnect, handle_pingreq
from gateway.broker.connecting.enhanced_authentication import handle_auth
from gateway.broker.deadlines import Deadlines
from gateway.broker.instant import Instant
from gateway.broker.publishing.publish import (
    handle_puback,
    handle_pubcomp,
    handle_publish,
    handle_pubrec,
    handle_pubrel,
)
from gateway.broker.state import State
from gateway.broker.subscribing.subscribe import handle_subscribe, handle_unsubscribe
from gateway.mqtt.errors import ProtocolError
from gateway.mqtt.packets import (
    Auth,
    Connect,
    Disconnect,
    Packet,
    PingReq,
    Subscribe,
    Unsubscribe,
)
from gateway.session.session import Session

STREAMS: dict[int, Callable[[State, Client, Session, Instant], None]] = {
    **dict.fromkeys(range(0x30, 0x40), handle_publish),
    0x40: handle_puback,
    0x50: handle_pubrec,
    0x62: handle_pubrel,
    0x70: handle_pubcomp,
}
"""Handlers of PUBLISH and acknowledgements, by first byte.

Each reads the received packet from the client's connection, with similar packets that follow. None
is called before CONNECT was accepted.
"""

HANDLERS: dict[type[Packet], Callable[[State, Client, Any, Instant], Pieces | None]] = {
    Connect: handle_connect,
    Subscribe: handle_subscribe,
    Unsubscribe: handle_unsubscribe,
    PingReq: handle_pingreq,
    Disconnect: handle_disconnect,
    Auth: handle_auth,
}
"""Handlers of all other packets; those with topic filters work in pieces."""


def handle(state: State, client: Client, instant: Instant) -> bool:
    """Call the handler of the received packet, which is none of STREAMS.

    Returns True if other clients should be served before the next packet; the packet may be
    unfinished, see `go_on`. Raises MqttError, also for packets that only a server may send.
    """
    packet = client.connection.packet()
    handler = HANDLERS.get(type(packet))
    if handler is None:
        session_of(client)  # raises if the packet should have been CONNECT
        raise ProtocolError(f"{type(packet).__name__} from a client")
    pieces = client.pieces = handler(state, client, packet, instant)
    if pieces is None:
        return False
    try:
        pause = next(pieces)
    except StopIteration:
        client.pieces = None
    else:
        _wait(state.deadlines, client, pieces, pause, instant)
    return True


def go_on(state: State, client: Client, pieces: Pieces, instant: Instant) -> None:
    """Handle the next piece of the client's last packet; raise MqttError."""
    try:
        pause = pieces.send(instant)
    except StopIteration:
        client.pieces = None
    else:
        _wait(state.deadlines, client, pieces, pause, instant)


def _wait(
    deadlines: Deadlines, client: Client, pieces: Pieces, pause: float | None, instant: Instant
) -> None:
    """Continue with the pieces after a pause, if they need one."""
    if pause is None:
        return

    def resume(_key: object, _instant: Instant) -> None:
        if client.pieces is HELD and not client.closing:
            client.pieces = pieces
            client.connection.on_output()

    client.pieces = HELD
    deadlines.set(("pieces", client), instant.monotonic + pause, resume)
