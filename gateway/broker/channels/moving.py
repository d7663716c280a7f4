"""Moves messages that wait in one channel to another, and dead letters back to their own."""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from gateway.broker.channels.dead_letters import properties_before
from gateway.mqtt.message import Message
from gateway.mqtt.publish_encoder import publication_of

if TYPE_CHECKING:
    from gateway.broker.channels.channel import Channel


class Target(NamedTuple):
    """Where a message goes, and as what."""

    channel: "Channel"
    message: Message


Find = Callable[[Message], Target | None]


def move_first(source: "Channel", find: Find, now: float) -> bool | None:
    """Move the next waiting message of a channel to where `find` says, with no attempts.

    A message that goes nowhere, or whose target is full, stays; then False is returned. None if no
    message is in memory. The other channel has it on disk before this one forgets it.
    """
    offer = source.waiting.next_of_all()
    if offer is None:
        return None
    span = offer.span
    target = find(span.publication.new_message(span.first))
    if target is None:
        return False
    publication = publication_of(target.message)
    if not target.channel.capacity(publication, 0, 1, span.qos):
        return False
    gone = source.waiting.take(offer)
    target.channel.accept(publication, 0, 1, span.qos, span.retain, (), now)
    source.journal.done(gone, gone.first, 1)
    return True


def to_channel(target: "Channel") -> Find:
    """Return where messages go that are moved to one channel: as they are."""
    return lambda message: Target(target, message)


def back(channels: Callable[[str], "list[Channel]"]) -> Find:
    """Return where dead letters go: to the channel that they came from, as they were then."""

    def find(letter: Message) -> Target | None:
        came_from = properties_before(letter)
        if came_from is None:
            return None
        name, topic, properties = came_from
        found = channels(name)
        if not found:
            return None
        letter.topic, letter.user_properties = topic, properties
        return Target(found[0], letter)

    return find
