"""Shared subscriptions with a queue of their own: `[[channel]]`."""

from collections.abc import Iterator
from enum import StrEnum

from gateway.settings.checks import (
    boolean,
    channel_name,
    one_of,
    plain_topic,
    unshared_filter,
    value_expression,
    whole_number,
)
from gateway.settings.declaration import Mistake, key, settings_class
from gateway.settings.quantities import duration, size
from gateway.settings.when_full import OF_ONE_QUEUE, WhenFull

LARGEST_MESSAGE = 268_435_455
"""Bytes of the largest packet that MQTT knows."""

HIGH, NORMAL, LOW = "high", "normal", "low"
"""The priorities, as the value of an expression."""

ENDINGS = ("#tmp", "#ephemeral")
"""Suffixes of the name of a temporary channel, as in NSQ and LMQ."""


class Choice(StrEnum):
    """Which of the consumers with capacity gets a message."""

    ROUND_ROBIN = "round_robin"  # in turn
    RANDOM = "random"
    LEAST_INFLIGHT = "least_inflight"  # the one with the fewest unacknowledged messages
    STICKY = "sticky"  # the same for all messages of a topic, while the consumers stay


@settings_class
class ChannelSettings:
    """A [channel](channels.md), whose consumers subscribe to `$share/<name>/<filter>`."""

    name: str = key(
        channel_name,
        "share name; with `#tmp` or `#ephemeral` temporary",
    )
    topic_filter: str = key(
        unshared_filter,
        "topic filter",
        name="filter",
    )
    choice: Choice = key(
        one_of(*Choice),
        "[which consumer](channels.md#which-consumer-gets-a-message) gets a message",
        Choice.ROUND_ROBIN,
    )
    temporary: bool = key(
        boolean,
        "[in memory only](channels.md#durable-and-temporary)",
        default=False,
    )
    memory_messages: int = key(
        whole_number(1, 1_000_000),
        "messages in memory; beyond: on disk only, dropped if temporary",
        1_000,
    )
    disk_bytes: int = key(
        size(1024, 1024**4),
        "bytes that may wait",
        256 * 1024 * 1024,
    )
    maximum_messages: int = key(
        whole_number(1, 100_000_000),
        "messages that may wait",
        1_000_000,
    )
    when_full: WhenFull = key(
        one_of(*OF_ONE_QUEUE),
        "[at these bounds](#full-queues), if durable",
        WhenFull.REJECT,
    )
    inflight_timeout: float = key(
        duration(0.1, 86_400),
        "time until [another consumer](channels.md#in-flight) gets an unacknowledged message",
        60.0,
    )
    max_attempts: int = key(
        whole_number(0, 65_535),
        "to deliver a message; 0: any number",
        20,
    )
    dead_letter_topic: str | None = key(
        plain_topic,
        "for messages after the last attempt, otherwise dropped",
        None,
    )
    maximum_age: float = key(
        duration(0, 10 * 366 * 86_400),
        "longest wait; 0: any",
        0.0,
    )
    dead_letter_expired: bool = key(
        boolean,
        "expired messages go there, too",
        default=False,
    )
    maximum_consumers: int = key(
        whole_number(1, 100_000),
        "consumers; beyond: 0x97",
        1_000,
    )
    minimum_message_size: int = key(
        size(0, LARGEST_MESSAGE),
        "smaller payloads are ignored",
        0,
    )
    maximum_message_size: int = key(
        size(0, LARGEST_MESSAGE),
        "larger payloads are ignored",
        LARGEST_MESSAGE,
    )

    priority: str | None = key(
        value_expression,
        "[gives](channels.md#priorities) `'high'`, `'normal'` or `'low'`",
        None,
    )
    last_value: str | None = key(
        value_expression,
        "only the newest message of a [value](channels.md#last-value-for-each-key) waits",
        None,
    )
    maximum_keys: int = key(
        whole_number(1, 1_000_000),
        "waiting values of `last_value`",
        10_000,
    )

    def mistakes(self, given: frozenset[str]) -> Iterator[Mistake]:  # noqa: ARG002 - a shape
        """Yield conflicts."""
        if self.dead_letter_expired and self.dead_letter_topic is None:
            yield "dead_letter_expired", True, "only together with dead_letter_topic"
        letters = self.max_attempts or self.dead_letter_expired
        if self.dead_letter_topic is not None and not letters:
            yield "dead_letter_topic", self.dead_letter_topic, "none while max_attempts is 0"
        if self.last_value is not None and self.priority is not None:
            yield "last_value", self.last_value, "only without priority"
        if self.minimum_message_size > self.maximum_message_size:
            most = self.maximum_message_size
            yield "minimum_message_size", self.minimum_message_size, f"at most {most}, the maximum"

    @property
    def share_name(self) -> str:
        """The name without the suffix of a temporary channel."""
        return self.name.partition("#")[0]

    @property
    def in_memory(self) -> bool:
        """Whether the channel is temporary, by its key or its name."""
        return self.temporary or self.name.endswith(ENDINGS)

    def is_last(self, attempts: int) -> bool:
        """Return whether a message with this many attempts has had its last one."""
        return 0 < self.max_attempts <= attempts
