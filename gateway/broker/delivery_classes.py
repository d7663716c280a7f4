"""Which delivery class a client has, as the configuration says."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from gateway.broker.client_pattern import client_matcher
from gateway.mqtt.delivery_policy import EACH, DeliveryPolicy
from gateway.session.delivery_class import DeliveryClass

DEVICE = "device"
DEVICE_PERSISTENT = "device_persistent"
APPLICATION = "application"
"""The classes: sessions that end with their connection, those that do not, and large receivers."""

FLUSH_SESSIONS = 10_000
"""Sessions for which messages are held at one time."""


@dataclass(frozen=True, slots=True)
class DeliveryRule:
    """A class for the clients whose identifier or user name fits; of the two one is given."""

    name: str
    client: str | None = None
    user: str | None = None


@dataclass(frozen=True, slots=True)
class DeliverySettings:
    """The policy of each class, who is in which, and for how many sessions messages are held."""

    device: DeliveryPolicy = EACH
    device_persistent: DeliveryPolicy = EACH
    application: DeliveryPolicy = EACH
    rules: tuple[DeliveryRule, ...] = ()
    flush_sessions: int = FLUSH_SESSIONS


class DeliveryClasses:
    """The first rule that fits a client holds, then what its listener says, then its session."""

    __slots__ = ("_classes", "_rules")

    def __init__(self, settings: DeliverySettings) -> None:
        self._classes = {
            DEVICE: DeliveryClass(DEVICE, settings.device),
            DEVICE_PERSISTENT: DeliveryClass(DEVICE_PERSISTENT, settings.device_persistent),
            APPLICATION: DeliveryClass(APPLICATION, settings.application),
        }
        self._rules: list[tuple[Callable[[str], bool] | None, str | None, DeliveryClass]] = [
            (
                None if rule.client is None else client_matcher(rule.client),
                rule.user,
                self._classes[rule.name],
            )
            for rule in settings.rules
        ]

    def __iter__(self) -> Iterator[DeliveryClass]:
        return iter(self._classes.values())

    def of_client(
        self, client_id: str, username: str | None, of_listener: str | None, *, persistent: bool
    ) -> DeliveryClass:
        """Return the class of a client that connects."""
        for matches, user, found in self._rules:
            if matches(client_id) if matches is not None else user == username:
                return found
        by_session = DEVICE_PERSISTENT if persistent else DEVICE
        return self._classes[of_listener or by_session]
