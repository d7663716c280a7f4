"""Which function handles which packet: the broker's map on one screen."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gateway.broker.acknowledge import handle_puback, handle_pubcomp, handle_pubrec
from gateway.broker.client import Client
from gateway.broker.connect import handle_connect
from gateway.broker.disconnect import handle_disconnect, handle_pingreq
from gateway.broker.enhanced_authentication import handle_auth
from gateway.broker.instant import Instant
from gateway.broker.publish import handle_publish, handle_pubrel
from gateway.broker.subscribe import handle_subscribe
from gateway.broker.unsubscribe import handle_unsubscribe
from gateway.mqtt.errors import ProtocolError
from gateway.mqtt.packets import (
    Auth,
    Connect,
    Disconnect,
    Packet,
    PingReq,
    PubAck,
    PubComp,
    Publish,
    PubRec,
    PubRel,
    Subscribe,
    Unsubscribe,
)

if TYPE_CHECKING:
    from gateway.broker.broker import Broker

HANDLERS: dict[type[Packet], Callable[["Broker", Client, Any, Instant], None]] = {
    Connect: handle_connect,
    Publish: handle_publish,
    PubAck: handle_puback,
    PubRec: handle_pubrec,
    PubRel: handle_pubrel,
    PubComp: handle_pubcomp,
    Subscribe: handle_subscribe,
    Unsubscribe: handle_unsubscribe,
    PingReq: handle_pingreq,
    Disconnect: handle_disconnect,
    Auth: handle_auth,
}


def handle(broker: "Broker", client: Client, packet: Packet, instant: Instant) -> None:
    """Hand a packet to its handler; raise ProtocolError for what only a server may send."""
    handler = HANDLERS.get(type(packet))
    if handler is None:
        raise ProtocolError(f"{type(packet).__name__} from a client")
    handler(broker, client, packet, instant)
