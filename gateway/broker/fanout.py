"""One message to everyone who gets it, encoded once for each form that receivers need."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from gateway.broker import peer_to_peer
from gateway.broker.inline import InlineClient
from gateway.broker.instant import Instant
from gateway.mqtt.reason_codes import FAILURE, ReasonCode
from gateway.routing.recipient import Recipient
from gateway.routing.topic_trie import TooManyNodes
from gateway.routing.where.message import Message
from gateway.session.delivery import Delivery, SharedDelivery
from gateway.session.overflow import count_refusal
from gateway.session.session import Session
from gateway.session.templates import Templates

if TYPE_CHECKING:
    from gateway.broker.broker import Broker


def publish(
    broker: "Broker", message: Message, instant: Instant, *, only_once: bool = False
) -> ReasonCode:
    """Keep, route and deliver a message; a code of 0x80 or above says that nobody got it.

    Parts of the gateway come first: what they refuse (a full outbox) is refused as a whole, so
    that the publisher can send it again without doubling it for anyone else. What will not come
    again, at QoS 0 or because it is said to come `only_once`, goes to everyone who can take it.
    """
    again = message.qos > 0 and not only_once
    if broker.settings.p2p:
        client_id = peer_to_peer.addressee(message.topic)
        if client_id is not None:
            return peer_to_peer.publish(broker, message, client_id, instant)
    if broker.replays.count:
        broker.replays.send_first(message.topic, instant)
    try:
        recipients = broker.router.recipients(message)
    except TooManyNodes:
        broker.counters.add("tidegate/refused/crowded_topics")
        return ReasonCode.QUOTA_EXCEEDED
    if again and not _has_room(broker, message, recipients):
        return ReasonCode.QUOTA_EXCEEDED
    first = [each for each in recipients if not isinstance(each.subscriber, Session)]
    kept = message.retain and _retain(broker, message, ask=bool(first))
    if message.retain and not kept and again:
        return ReasonCode.QUOTA_EXCEEDED
    for recipient in first:
        inline = cast("InlineClient", recipient.subscriber)
        code = inline.receive(message, list(recipient.topic_filters))
        if code >= FAILURE and again:
            return code
    if kept:
        if first:
            broker.retained.set(message)
        broker.store.keep_retained(message)
    if not recipients:
        return ReasonCode.NO_MATCHING_SUBSCRIBERS
    deliver(recipients, message, instant, promised=again)
    return ReasonCode.SUCCESS


def _retain(broker: "Broker", message: Message, *, ask: bool) -> bool:
    """Keep the message in place of its topic's last one, or `ask` whether there is room for it.

    Returns False, and counts it, where there is none.
    """
    retained = broker.retained
    if retained.accepts(message) if ask else retained.set(message):
        return True
    broker.counters.add("tidegate/retained/rejected")
    return False


def _has_room(broker: "Broker", message: Message, recipients: Sequence[Recipient]) -> bool:
    """Return False, and count it, if an acknowledged message would be lost on a recipient."""
    kept = message.retain
    for recipient in recipients:
        subscriber = recipient.subscriber
        if isinstance(subscriber, Session):
            if not subscriber.has_room(recipient.qos):
                count_refusal(subscriber)
                return False
            kept = kept or (recipient.qos > 0 and subscriber.persistent)
    if kept and message.commit_within is not None and broker.store.full:
        broker.counters.add("tidegate/storage/rejected")
        return False
    return True


def share_out(broker: "Broker", deliveries: list[SharedDelivery], instant: Instant) -> None:
    """Give what a session leaves over to other members of its shared subscriptions, if any.

    They SHOULD get what was sent to it at QoS 1 and not acknowledged (section 4.8.2).
    """
    for delivery in deliveries:
        if delivery.expired(instant.monotonic):
            broker.counters.add("publish/messages/expired")
            continue
        message = cast("Message", delivery.message)  # the broker makes no other
        member = broker.router.member(delivery.topic_filter, message)
        if member is not None:
            deliver([member], message, instant)


def deliver(
    recipients: Sequence[Recipient], message: Message, instant: Instant, *, promised: bool = False
) -> None:
    """Hand the message to the sessions among the recipients."""
    templates = Templates(message)
    for recipient in recipients:
        if isinstance(recipient.subscriber, Session):
            recipient.subscriber.deliver(
                _delivery(recipient, message), templates, instant.monotonic, promised=promised
            )


def _delivery(recipient: Recipient, message: Message) -> Delivery:
    qos, retain, identifiers = recipient.qos, recipient.retain, tuple(recipient.identifiers)
    if recipient.shared:
        return SharedDelivery(
            message, qos, retain, identifiers, topic_filter=recipient.topic_filters[0]
        )
    return Delivery(message, qos, retain, identifiers)
