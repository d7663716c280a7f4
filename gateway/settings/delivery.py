"""How messages leave for clients, each at once or several together: `[delivery]`."""

from collections.abc import Iterator

from gateway.settings.checks import one_of, text, whole_number
from gateway.settings.declaration import Mistake, key, settings_class, table, tables
from gateway.settings.quantities import milliseconds, size


@settings_class
class DeliveryClassSettings:
    """The [delivery policy](delivery.md) of one class of clients."""

    policy: str = key(
        one_of("each", "buffered"),
        "`each`: at the end of the turn; `buffered`: held up to a bound below",
        "each",
    )
    buffered_count: int | None = key(
        whole_number(1, 1_000),
        "messages sent together",
        None,
        shown="5, for `application` 10",
    )
    buffered_bytes: int = key(
        size(1, 256 * 1024),
        "bytes sent together",
        64 * 1024,
    )
    idle_flush: int | None = key(
        milliseconds(0, 10_000),
        "milliseconds that one may be held; 0: to the end of the turn",
        None,
        shown="200, for `application` 0",
    )


@settings_class
class DeliveryRule:
    """The class of a client; of up to 100 tables the first match counts.

    Without one it is that of the listener, otherwise `device` if the session ends with the
    connection, and `device_persistent` if it does not.
    """

    name: str = key(
        one_of("device", "device_persistent", "application"),
        "the class",
        name="class",
    )
    client: str | None = key(
        text,
        "its identifier, `*` for any characters",
        None,
    )
    user: str | None = key(
        text,
        "user name",
        None,
    )

    def mistakes(self, given: frozenset[str]) -> Iterator[Mistake]:
        """Yield conflicts between the keys that are `given`."""
        if not given & {"user", "client"}:
            yield "client", None, "client or user must be given"
        elif {"user", "client"} <= given:
            yield "client", self.client, "either client or user, not both"


@settings_class
class DeliverySettings:
    """When messages are sent to clients ([delivery](delivery.md))."""

    flush_sessions: int = key(
        whole_number(0, 1_000_000),
        "sessions with held messages; beyond: sent at once",
        10_000,
    )
    flush_interval: int = key(
        milliseconds(1, 1_000),
        "milliseconds between two flushes, or a quarter of a shorter `idle_flush`",
        100,
    )
    device: DeliveryClassSettings = table(DeliveryClassSettings)
    device_persistent: DeliveryClassSettings = table(DeliveryClassSettings)
    application: DeliveryClassSettings = table(DeliveryClassSettings)
    rules: tuple[DeliveryRule, ...] = tables(DeliveryRule, name="rule", most=100)
