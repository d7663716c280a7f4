"""Moves messages that wait in one channel to another, and dead letters back to their own."""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from gateway.broker.channels.dead_letters import came_from
from gateway.broker.instant import Instant
from gateway.mqtt.message import Message
from gateway.mqtt.publish_encoder import publication_of

if TYPE_CHECKING:
    from gateway.broker.channels.channel import Channel


class Target(NamedTuple):
    """The channel that a message goes to, and what it is there."""

    channel: "Channel"
    message: Message
    replaces: bool = True  # an older message of its key that waits there


Find = Callable[[Message], Target | None]


def move_next(source: "Channel", find: Find, now: float) -> "Channel | None":
    """Move the next message that waits in memory to where `find` says, with no attempts.

    Returns the channel that has it now; None if none is in memory, or that channel is full. One
    that `find` knows no place for goes to the end of its own channel. The target has it on disk
    before the source forgets it. One that does not replace a newer one of its key there is dropped.
    """
    found = ((each, each.waiting.any()) for each in source.every_level)
    level, offer = next(((each, offer) for each, offer in found if offer is not None), (None, None))
    if level is None or offer is None:
        return None
    span = offer.span
    message = span.publication.new_message(span.first)
    target, message, replaces = find(message) or Target(source, message)
    publication = publication_of(message)
    values = target.waiting.last_values
    if not replaces and values is not None and not values.is_newest(publication, 0):
        span = level.waiting.remove(offer)
        level.forget(span, span.first, 1)
        target.figures.replaced += 1
        return target
    if not target.capacity(publication, 0, 1, span.qos):
        return None
    span = level.waiting.remove(offer)
    target.accept(publication, 0, 1, span.qos, span.retain, (), now)
    level.forget(span, span.first, 1)
    return target


def to_channel(target: "Channel") -> Find:
    """Return where messages go that are moved to one channel: they are what they were."""
    return lambda message: Target(target, message)


def back(channels: "Callable[[str], list[Channel]]", now: Callable[[], Instant]) -> Find:
    """Return where dead letters go: to the channel that they came from, as what they were there.

    `channels` returns those with a name. Letters arrive there `now`: they would be too old again.
    """

    def find(letter: Message) -> Target | None:
        origin = came_from(letter)
        found = channels(origin.channel) if origin else []
        if origin is None or not found:
            return None
        letter.topic, letter.user_properties = origin.topic, origin.user_properties
        arrived = now()
        letter.arrived, letter.received_at = arrived.monotonic, arrived.wall
        # what waits there came after it
        return Target(found[0], letter, replaces=False)

    return find
