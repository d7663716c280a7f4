"""Which delivery class a client has, as the configuration says."""

from collections.abc import Callable, Iterator

from gateway.broker.client_pattern import client_matcher
from gateway.mqtt.delivery_policy import COUNT, DELAY, EACH, DeliveryPolicy
from gateway.session.delivery_class import DeliveryClass
from gateway.settings.delivery import DeliveryClassSettings, DeliverySettings

DEVICE = "device"
DEVICE_PERSISTENT = "device_persistent"
APPLICATION = "application"
"""The classes: sessions that end with their connection, those that do not, and large receivers."""

APPLICATION_COUNT = 10
"""Messages for an application that leave together, where nothing says otherwise."""


class DeliveryClasses:
    """The first rule that fits a client holds, then what its listener says, then its session."""

    __slots__ = ("_classes", "_rules")

    def __init__(self, settings: DeliverySettings) -> None:
        self._classes = {
            name: DeliveryClass(name, EACH) for name in (DEVICE, DEVICE_PERSISTENT, APPLICATION)
        }
        self.change(settings)

    def change(self, settings: DeliverySettings) -> None:
        """Let other policies hold from now on, and other rules for clients that come."""
        for name, own, *usual in (
            (DEVICE, settings.device),
            (DEVICE_PERSISTENT, settings.device_persistent),
            (APPLICATION, settings.application, APPLICATION_COUNT, 0),
        ):
            self._classes[name].policy = _policy(settings, own, *usual)
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


def _policy(
    settings: DeliverySettings, own: DeliveryClassSettings, count: int = COUNT, delay: int = DELAY
) -> DeliveryPolicy:
    if own.policy == "each":
        return EACH
    count = count if own.buffered_count is None else own.buffered_count
    delay = delay if own.idle_flush is None else own.idle_flush
    interval = settings.flush_interval / 1000
    return DeliveryPolicy(count, own.buffered_bytes, delay / 1000, interval)
