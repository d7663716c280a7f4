"""How messages that consumers have come back to their channel, and what is noted of them."""

from math import inf
from typing import TYPE_CHECKING

from gateway.broker.channels.deliveries import Delivery
from gateway.broker.channels.returned import Returned

if TYPE_CHECKING:
    from gateway.broker.channels.channel import Channel

NOTED_AFTER = 1.0
"""Seconds that a message is in flight before its attempt is noted on disk: few are so long."""


def give_back(channel: "Channel", delivery: Delivery, number: int, second: float = 0.0) -> None:
    """Put a message back before the queue, or among the dead letters after its last attempt.

    It stays out of the way until the monotonic `second`.
    """
    span = delivery.source.part(delivery.original(number), 1)
    channel.journal.attempted(span, span.first, delivery.attempts)
    if channel.is_last(delivery.attempts):
        channel.bury(span, delivery.attempts)
    else:
        channel.returned.put(Returned(span, delivery.attempts, delivery.consumer), second)


def time_out(channel: "Channel", now: float) -> float:
    """Take back what was not acknowledged in time, and what was to come later.

    Returns the second at which something is due next, 0 if nothing is. A consumer's packet
    identifier stays in use until it acknowledges it all the same.
    """
    later = channel.returned.come_back(now)
    for delivery in list(channel.deliveries):
        if delivery.due > now:
            return min(delivery.due, later or inf)
        for number in delivery.pending():
            channel.figures.timed_out += 1
            give_back(channel, delivery, number)
        channel.deliveries.settle(delivery, delivery.left)
    return later


def note_long_ones(channel: "Channel", now: float) -> None:
    """Have it noted what has been in flight for a while."""
    channel.unnoted = False
    for delivery in channel.deliveries:
        if not delivery.noted:
            channel.unnoted = delivery.given > now - NOTED_AFTER
            if channel.unnoted:
                break
            delivery.noted = True
            channel.note_attempts(delivery, delivery.pending())


def touch(channel: "Channel", client_id: str, now: float) -> int:
    """Give a consumer the whole time again for all that it has; return how many these are."""
    touched = channel.deliveries.of(client_id)
    for delivery in touched:
        delivery.due = now + channel.settings.inflight_timeout
        channel.deliveries.add(delivery)
    return sum(each.left for each in touched)


def requeue(channel: "Channel", client_id: str, second: float = 0.0) -> int:
    """Take back all that a consumer has; return how many these are.

    They are given out again from the monotonic `second` on.
    """
    taken = 0
    for delivery in channel.deliveries.of(client_id):
        for number in delivery.pending():
            packet_id = delivery.sent.packet_id + number - delivery.sent.first
            delivery.consumer.inflight.take((packet_id,), 0)
            give_back(channel, delivery, number, second)
            channel.deliveries.settle(delivery, 1)
            taken += 1
    channel.figures.requeued += taken
    channel.wake(0.0)  # the consumer has room, and `time_out` says when the next is due
    return taken
