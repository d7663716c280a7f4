"""How a session goes on with another connection, or in another run of the gateway."""

from typing import Final

from gateway.session.delivery import Delivery
from gateway.session.delivery_queue import DeliveryQueue
from gateway.session.inflight_message import InflightMessage, Sent, hold
from gateway.session.kept import KeptDelivery, KeptRest
from gateway.session.session import Session
from gateway.session.waiting_run import Waiting

NOTHING: Final = KeptRest(0, 0, 0, 0)


def note_departure(session: Session, wall: int) -> None:
    """Let the journal know what it needs to go on with another connection (`wall` is now).

    The packet identifiers of QoS 1 messages are noted here for the first time: while they are
    on their way, acknowledgements come faster than anything is written.
    """
    memory = session.limits.memory
    for packet_id, message in session.inflight.items():
        if message.delivery.qos == 1 and not message.noted:
            message.noted = True
            delivery, before = message.delivery, message.delivery.message
            session.journal.identify(delivery, packet_id)
            if delivery.message is not before:  # one of its own, for a row of its own
                memory.remove(before)
                memory.add(delivery.message)
    session.journal.leave(wall)


def restore(
    session: Session,
    deliveries: list[KeptDelivery],
    rest: KeptRest | None = None,
    *,
    connected: bool,
) -> None:
    """Take up what an earlier run left; without a connection, as after `detach`.

    If the session was `connected` to the end, it is not known which QoS 1 messages were sent:
    as many as fitted into the window are taken for sent, and so come with DUP.
    """
    begun: list[tuple[int, Sent]] = []
    queued: list[Waiting] = []
    window = session.limits.maximum_inflight
    for kept in deliveries:
        delivery, packet_id = kept.delivery, kept.packet_id
        maybe = connected and delivery.qos == 1 and not queued and len(begun) < window
        if isinstance(delivery, Delivery):
            if packet_id or maybe:
                message = InflightMessage(delivery, kept.released, bool(packet_id))
                begun.append((packet_id, message))
                continue
        elif maybe:
            opened = delivery.open()
            sent = opened[: window - len(begun)]
            begun += [(0, InflightMessage(each)) for each in sent]
            queued += opened[len(sent) :]
            continue
        queued.append(delivery)
    _restore_queue(session.queue, queued, rest or NOTHING)
    session.inflight.restore(begun)
    hold(session.inflight, session.limits.memory)


def _restore_queue(queue: DeliveryQueue, read: list[Waiting], rest: KeptRest) -> None:
    """Let the queue take what was read for its first page, which stands before all the rest."""
    messages = rest.messages + sum(each.count for each in read)
    size = rest.bytes + sum(each.kept for each in read)
    queue.restore_rest(rest.after, rest.up_to, messages, size)
    queue.take_page(read, complete=False)


def owed(session: Session) -> list[Waiting]:
    """Return everything in memory that the session is still owed, in order."""
    return [*(message.delivery for message in session.inflight), *session.queue]
