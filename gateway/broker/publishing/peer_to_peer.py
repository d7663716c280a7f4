"""Messages from one client to another that need no subscription.

A PUBLISH to `{first level}/p2p/{client identifier}` is for the client of that name alone: no other
subscription matches it, no part of the gateway sees it, so it goes up to no fleet, and it is
not retained, since whoever subscribed later would read it. Where peer to peer topics are switched
off, such a topic is like any other.
"""

from typing import TYPE_CHECKING

from gateway.access.rule import READ
from gateway.broker.instant import Instant
from gateway.broker.publishing.refusals import refuse_for, refuse_for_disk
from gateway.mqtt.publication import Publication
from gateway.mqtt.reason_codes import ReasonCode

if TYPE_CHECKING:
    from gateway.broker.broker import Broker
    from gateway.broker.publishing.forward import Outcome
    from gateway.broker.publishing.topic_admissions import TopicAdmission

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


def forward(
    broker: "Broker",
    publication: Publication,
    first: int,
    admission: "TopicAdmission",
    instant: Instant,
) -> "Outcome":
    """Deliver messages to the client, or to its session while it is away, at their own QoS.

    A client that may not read the topic is not there for them.
    """
    session = broker.sessions.get(admission.addressee or "")
    count, qos = publication.packets.count - first, publication.qos
    if session is None or not broker.admissions.rights(admission, session.access) & READ:
        return count, ReasonCode.NO_MATCHING_SUBSCRIBERS, None
    count = session.room(publication, first, count, qos)
    if not count:
        refuse_for(broker, session)
        return 0, ReasonCode.SUCCESS, ReasonCode.QUOTA_EXCEEDED
    if qos and session.persistent and broker.store.full:
        refuse_for_disk(broker)
        return 0, ReasonCode.SUCCESS, ReasonCode.QUOTA_EXCEEDED
    session.accept(publication, first, count, qos, now=instant.monotonic)
    return count, ReasonCode.SUCCESS, None
