"""What is written to the card: `[storage]`, `[[durability]]` and `[history]`."""

from collections.abc import Iterator

from gateway.settings.checks import text, unshared_filter
from gateway.settings.declaration import Mistake, key, settings_class
from gateway.settings.durability import durability
from gateway.settings.quantities import bytes_a_day, milliseconds, seconds, size, size_from


@settings_class
class StorageSettings:
    """What is written to the card, and when."""

    durability: str = key(
        durability,
        "default [durability class](../understand/durability.md); the interval of `batch(<ms>)` "
        "is 1 to 120000",
        "commit",
    )
    commit_delay: int = key(
        milliseconds(0, 1_000),
        "milliseconds by which a commit may be delayed while all receivers are online: what "
        "they acknowledge meanwhile is not written",
        5,
    )
    write_budget: int | None = key(
        bytes_a_day,
        "bytes written in a day. The class `batch` uses its whole interval only while more is "
        "written. If that does not suffice, the alarm `write_budget` is raised",
        None,
    )
    endurance: int | None = key(
        size_from(1),
        'bytes that the card can write in its life, such as `"20TB"`; `tidegate doctor` shows '
        "how long it lasts",
        None,
        shown="estimated from the device's size",
    )


@settings_class
class DurabilityRule:
    """A [durability class](../understand/durability.md) for some clients, or for some topics.

    Either `client` or `topic` is given. The first table that matches counts, before the
    listener's class; there may be 100 of them.
    """

    durability: str = key(
        durability,
        "their [durability class](../understand/durability.md)",
        name="class",
    )
    client: str | None = key(
        text,
        "client identifier, in which `*` stands for any characters",
        None,
    )
    topic: str | None = key(
        unshared_filter,
        "messages that match this topic filter",
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
    """A record of the accepted messages."""

    keep: int = key(
        seconds(),
        'how long every message is stored; `"0"` deletes the history. A write for every '
        "message: not for weak cards",
        0,
        shown='`"0"`, off',
    )
    maximum_bytes: int = key(
        size(64 * 1024, 1024**4),
        "bytes of the history; beyond, the oldest messages are deleted",
        256 * 1024 * 1024,
    )
