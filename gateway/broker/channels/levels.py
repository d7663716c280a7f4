"""The priorities of a channel's messages: each level has a queue of its own."""

from collections.abc import Callable
from enum import IntEnum
from typing import TYPE_CHECKING

from gateway.broker.channels.figures import ChannelFigures
from gateway.mqtt.publication import Publication
from gateway.settings.channel import HIGH, LOW, NORMAL

if TYPE_CHECKING:
    from gateway.broker.channels.channel import Channel
    from gateway.where.evaluation.closures import Reader
    from gateway.where.language.conversions import Value


class Level(IntEnum):
    """A priority. The number is part of sequence numbers on disk: that of NORMAL must be 0."""

    NORMAL = 0
    HIGH = 1
    LOW = 2

    @property
    def suffix(self) -> str:
        """What follows the share name in the database; a share name has no `#`."""
        return "" if self is Level.NORMAL else f"#{self.name.lower()}"


ORDER = (Level.HIGH, Level.NORMAL, Level.LOW)

LEVELS = {HIGH: Level.HIGH, NORMAL: Level.NORMAL, LOW: Level.LOW}
"""The levels by the values of an expression."""


class Levels:
    """The channels of all levels, which share the consumers: a lower one waits for higher ones.

    The level of a message is the value of an expression. It is NORMAL if that is NULL, and if it is
    no level, which is counted.
    """

    __slots__ = ("_read", "channels")

    def __init__(self, channels: "tuple[Channel, ...]") -> None:
        self.channels = channels
        self._read: Reader | None = None

    def read_by(self, expression: str | None) -> None:
        """Find levels by this expression from now on; without one all messages are NORMAL."""
        self._read = None
        if expression is not None:
            from gateway.where.compile import compile_value  # in memory where it is used

            self._read = compile_value(expression)

    def channel(self, level: Level) -> "Channel":
        """Return the channel of a level."""
        return self.channels[ORDER.index(level)]

    def of(
        self, publication: Publication, first: int, most: int, figures: ChannelFigures | None
    ) -> "tuple[Channel, int]":
        """Return the channel for message number `first`, and for how many in a row.

        Values that are no level are counted in `figures`, if there are any.
        """
        if self._read is None:
            return self.channel(Level.NORMAL), most
        level, bad = _level(self._read(publication.new_message(first)))
        count = 1
        while count < most:
            other, is_bad = _level(self._read(publication.new_message(first + count)))
            if other is not level:
                break
            bad += is_bad
            count += 1
        if figures is not None:
            figures.bad_priority += bad
        return self.channel(level), count

    def block(self, level: Level) -> bool:
        """Return whether messages of this level wait for one of a higher level."""
        return any(each.waiting.has_next for each in self.channels[: ORDER.index(level)])


def add_levels(channel: "Channel", make: "Callable[[Level], Channel]") -> Levels:
    """Give a channel the other levels, which `make` makes; return all.

    They share its consumers.
    """
    made = [make(level) for level in ORDER if level is not channel.level]
    found = (*made[:1], channel, *made[1:])
    channel.levels = levels = Levels(found)
    for each in made:
        each.levels = levels
        each.consumers.serve(channel.consumers.group)
        channel.consumers.every_level.append(each.deliveries)
        each.deliveries.late = channel.deliveries.late
        each.waiting.paused = channel.waiting.paused
        each.waiting.paused_filters = channel.waiting.paused_filters
    return levels


def _level(value: "Value") -> tuple[Level, int]:
    """Return the level of a value, and 1 if it is neither one nor NULL."""
    level = LEVELS.get(value) if isinstance(value, str) else None
    return level or Level.NORMAL, int(level is None and value is not None)
