"""What is written to the card: `[storage]`, `[[durability]]` and `[history]`."""

from collections.abc import Iterator

from gateway.settings.checks import text, unshared_filter
from gateway.settings.declaration import Mistake, key, settings_class
from gateway.settings.durability import durability
from gateway.settings.quantities import bytes_a_day, milliseconds, seconds, size, size_from


@settings_class
class StorageSettings:
    """What is written to the card."""

    durability: str = key(
        durability,
        "default [durability class](../understand/durability.md); `<ms>` is 1 to 120000",
        "commit",
    )
    commit_delay: int = key(
        milliseconds(0, 1_000),
        "milliseconds that a commit may wait if all receivers are online; what they "
        "acknowledge is not written",
        5,
    )
    write_budget: int | None = key(
        bytes_a_day,
        "bytes a day; above it `batch` waits its whole interval, and then the alarm "
        "`write_budget` is raised",
        None,
    )
    endurance: int | None = key(
        size_from(1),
        "bytes that the card can write in its life, for `tidegate doctor`",
        None,
        shown="estimated from the device's size",
    )


@settings_class
class DurabilityRule:
    """The [durability class](../understand/durability.md) of a client, or of messages on a topic.

    Of up to 100 tables the first match counts, before the listener's class. One has `client` or
    `topic`.
    """

    durability: str = key(
        durability,
        "the class",
        name="class",
    )
    client: str | None = key(
        text,
        "its identifier, `*` for any characters",
        None,
    )
    topic: str | None = key(
        unshared_filter,
        "filter of the messages' topics",
        None,
    )

    def mistakes(self, given: frozenset[str]) -> Iterator[Mistake]:
        """Yield conflicts between the keys that are `given`."""
        if not given & {"topic", "client"}:
            yield "topic", None, "topic or client must be given"
        elif {"topic", "client"} <= given:
            yield "topic", self.topic, "either topic or client, not both"


@settings_class
class HistorySettings:
    """A record of the accepted messages. It writes each one: not for weak cards."""

    keep: int = key(
        seconds(),
        'how long messages are stored; `"0"` deletes the history',
        0,
    )
    maximum_bytes: int = key(
        size(64 * 1024, 1024**4),
        "beyond: the oldest are deleted",
        256 * 1024 * 1024,
    )
