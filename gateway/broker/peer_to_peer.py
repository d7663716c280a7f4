"""Messages from one client to another that need no subscription.

A PUBLISH to `{first level}/p2p/{client identifier}` is for the client of that name alone: no other
subscription matches it, no part of the gateway sees it, so it goes up to no fleet, and it is
not retained, since whoever subscribed later would read it. Where peer to peer topics are switched
off, such a topic is like any other.
"""

from typing import TYPE_CHECKING

from gateway.broker.instant import Instant
from gateway.mqtt.reason_codes import ReasonCode
from gateway.routing.where.message import Message
from gateway.session.delivery import Delivery
from gateway.session.overflow import count_refusal
from gateway.session.templates import Templates

if TYPE_CHECKING:
    from gateway.broker.broker import Broker

MARK = "/p2p/"


def addressee(topic: str) -> str | None:
    """Return the client identifier that a peer to peer topic names, None for any other topic.

    The topic has three levels: a client whose identifier holds a `/` cannot be named, and the
    gateway's own topics, which begin with `$`, are not peer to peer.
    """
    if MARK not in topic or topic.startswith("$"):
        return None
    levels = topic.split("/")
    return levels[2] if len(levels) == 3 else None


def publish(broker: "Broker", message: Message, client_id: str, instant: Instant) -> ReasonCode:
    """Deliver the message to the client, or to its session while it is away, at its own QoS."""
    session = broker.sessions.get(client_id)
    if session is None:
        return ReasonCode.NO_MATCHING_SUBSCRIBERS
    if not session.has_room(message.qos):
        count_refusal(session)
        return ReasonCode.QUOTA_EXCEEDED
    if message.qos and session.persistent and broker.store.full:
        broker.counters.add("tidegate/storage/rejected")
        return ReasonCode.QUOTA_EXCEEDED
    session.deliver(Delivery(message, message.qos), Templates(message), instant.monotonic)
    return ReasonCode.SUCCESS
