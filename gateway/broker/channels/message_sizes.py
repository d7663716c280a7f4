"""Which messages have a size that a channel takes."""

from itertools import groupby

from gateway.broker.channels.settings import ChannelSettings
from gateway.mqtt.publication import Publication


def alike_in_size(
    publication: Publication, settings: ChannelSettings, first: int, most: int
) -> tuple[bool, int]:
    """Return whether a message has a size that the channel takes, and how many do alike."""
    smallest, largest = settings.minimum_message_size, settings.maximum_message_size
    packets = publication.packets
    if not smallest and packets.payloads <= largest:
        return True, most
    sizes = (packets.payload_bytes(number, 1) for number in range(first, first + most))
    fits, alike = next(groupby(sizes, lambda size: smallest <= size <= largest))
    return fits, len(list(alike))
