"""What the configuration says of channels."""

from dataclasses import dataclass
from enum import StrEnum

from gateway.session.limits import WhenFull
from gateway.session.queue.bounds import HEAD_MESSAGES, MAXIMUM_BYTES, MAXIMUM_MESSAGES

MAXIMUM_CHANNELS = 1_000
"""Channels at one time."""

MAXIMUM_CONSUMERS = 1_000
"""Consumers of one channel."""

MAXIMUM_PAUSED_FILTERS = 100
"""Topic filters whose messages no channel gives out: each is compared with every message."""

LARGEST_MESSAGE = 268_435_455
"""Bytes of the largest packet that MQTT knows."""


class Choice(StrEnum):
    """Which of the consumers that have room gets a message."""

    ROUND_ROBIN = "round_robin"  # whose turn it is
    RANDOM = "random"
    LEAST_INFLIGHT = "least_inflight"  # who has the fewest unacknowledged messages
    STICKY = "sticky"  # the same for all messages of a topic, while the consumers stay


class Unconfigured(StrEnum):
    """What a shared subscription is that no channel is configured for."""

    SHARED = "shared"  # as MQTT has it: each message goes to a member at once
    TEMPORARY = "temporary"
    DURABLE = "durable"


@dataclass(frozen=True, slots=True)
class ChannelSettings:
    """A channel: `name` and `topic_filter` are those of `$share/<name>/<topic filter>`.

    Times are in seconds. A `temporary` channel is in memory alone and ends with its last consumer.
    """

    name: str
    topic_filter: str
    choice: Choice = Choice.ROUND_ROBIN
    temporary: bool = False
    memory_messages: int = HEAD_MESSAGES
    maximum_messages: int = MAXIMUM_MESSAGES
    disk_bytes: int = MAXIMUM_BYTES
    when_full: WhenFull = WhenFull.REJECT
    inflight_timeout: float = 60.0
    max_attempts: int = 0  # 0 for any number
    dead_letter_topic: str | None = None
    maximum_consumers: int = MAXIMUM_CONSUMERS
    minimum_message_size: int = 0  # of a payload, in bytes
    maximum_message_size: int = LARGEST_MESSAGE

    def is_last(self, attempts: int) -> bool:
        """Return whether a message that was given out so many times is given up."""
        return 0 < self.max_attempts <= attempts


@dataclass(frozen=True, slots=True)
class ChannelsSettings:
    """All channels that are configured, and what becomes of other shared subscriptions."""

    channels: tuple[ChannelSettings, ...] = ()
    unconfigured: Unconfigured = Unconfigured.SHARED
    maximum: int = MAXIMUM_CHANNELS
