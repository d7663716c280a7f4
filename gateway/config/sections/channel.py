"""Shared subscriptions with a queue of their own: `[[channel]]`."""

from collections.abc import Iterator
from dataclasses import dataclass

from gateway.config.checks import (
    boolean,
    channel_name,
    number,
    one_of,
    plain_topic,
    unshared_filter,
    whole_number,
)
from gateway.config.declaration import Mistake, key

LARGEST_MESSAGE = 268_435_455
"""Bytes of the largest packet that MQTT knows."""

ENDINGS = ("#tmp", "#ephemeral")
"""What the name of a temporary channel may end with, as in NSQ and LMQ."""


@dataclass(frozen=True, slots=True)
class ChannelConfig:
    """A [channel](channels.md), whose consumers subscribe to `$share/<name>/<filter>`."""

    name: str = key(
        channel_name,
        "the share name; with `#tmp` or `#ephemeral` behind it the channel is temporary",
    )
    filter: str = key(
        unshared_filter,
        "topic filter",
    )
    choice: str = key(
        one_of("round_robin", "random", "least_inflight", "sticky"),
        "which consumer with room gets a message; `sticky`: the same for all of a topic",
        "round_robin",
    )
    temporary: bool = key(
        boolean,
        "in memory alone; ends with its last consumer",
        default=False,
    )
    memory_messages: int = key(
        whole_number(1, 1_000_000),
        "messages that are kept in memory; of a durable channel the others are on disk alone, of a "
        "temporary one they are dropped",
        1_000,
    )
    disk_bytes: int = key(
        whole_number(1024, 1024**4),
        "bytes that may wait, on disk where there is one",
        256 * 1024 * 1024,
    )
    maximum_messages: int = key(
        whole_number(1, 100_000_000),
        "messages that may wait",
        1_000_000,
    )
    when_full: str = key(
        one_of("reject", "drop-oldest", "drop-newest"),
        "what happens to a message for a durable channel that is full, as with `queue_when_full`",
        "reject",
    )
    inflight_timeout: float = key(
        number(0.1, 86_400),
        "seconds in which a consumer is to acknowledge a message; then another one gets it",
        60.0,
    )
    max_attempts: int = key(
        whole_number(0, 65_535),
        "times that a message is given out; 0 for any number",
        0,
    )
    dead_letter_topic: str | None = key(
        plain_topic,
        "where a message goes after its last attempt; without it, nowhere",
        None,
    )
    maximum_consumers: int = key(
        whole_number(1, 100_000),
        "consumers; one more gets 0x97",
        1_000,
    )
    minimum_message_size: int = key(
        whole_number(0, LARGEST_MESSAGE),
        "bytes of a payload; the channel does not take a smaller one",
        0,
    )
    maximum_message_size: int = key(
        whole_number(0, LARGEST_MESSAGE),
        "bytes of a payload; the channel does not take a larger one",
        LARGEST_MESSAGE,
    )

    def mistakes(self, given: frozenset[str]) -> Iterator[Mistake]:  # noqa: ARG002 - a shape
        """Yield what does not go together."""
        if self.dead_letter_topic is not None and not self.max_attempts:
            yield "dead_letter_topic", self.dead_letter_topic, "only together with max_attempts"
        if self.minimum_message_size > self.maximum_message_size:
            most = self.maximum_message_size
            yield "minimum_message_size", self.minimum_message_size, f"at most {most}, the maximum"

    @property
    def share_name(self) -> str:
        """The name without what says that the channel is temporary."""
        return self.name.partition("#")[0]

    @property
    def in_memory(self) -> bool:
        """Whether the channel is temporary, by its key or its name."""
        return self.temporary or self.name.endswith(ENDINGS)
