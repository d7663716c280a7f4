"""What happens to a message when a queue or the outbox is full: the words of `when_full`."""

from enum import StrEnum


class WhenFull(StrEnum):
    """The policies for a message that does not fit.

    With REJECT the publisher is refused and still has it. The others evict an acknowledged message:
    DROP_LOWEST_PRIORITY the oldest of the least important stream that has any, or the arriving
    message itself if all waiting ones are more important.
    """

    REJECT = "reject"
    DROP_OLDEST = "drop-oldest"
    DROP_NEWEST = "drop-newest"
    DROP_LOWEST_PRIORITY = "drop-lowest-priority"


OF_ONE_QUEUE = tuple(each for each in WhenFull if each is not WhenFull.DROP_LOWEST_PRIORITY)
"""Policies that make sense within one queue, channel or stream, which has one priority."""

GIVING_UP = tuple(each for each in WhenFull if each is not WhenFull.REJECT)
"""Policies that may lose an acknowledged message."""

CONSEQUENCES = {
    WhenFull.REJECT: "publishers are refused",
    WhenFull.DROP_NEWEST: "local subscribers still get what the fleet will not",
    WhenFull.DROP_OLDEST: "the oldest messages are dropped for new ones",
    WhenFull.DROP_LOWEST_PRIORITY: "the least important messages are dropped",
}
"""The consequence for messages, in the alarm of a full outbox."""
