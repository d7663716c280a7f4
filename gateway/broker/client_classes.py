"""The delivery and durability classes of clients and messages, as configured."""

from collections.abc import Callable, Iterable, Iterator

from gateway.mqtt.delivery_policy import COUNT, DELAY, EACH, DeliveryPolicy
from gateway.mqtt.topics import topic_matches
from gateway.session.delivery_class import DeliveryClass
from gateway.session.durability_class import DurabilityClass
from gateway.settings.delivery import DeliveryClassSettings, DeliverySettings
from gateway.settings.durability import commit_within
from gateway.settings.storage import DurabilityRule


def client_matcher(pattern: str) -> Callable[[str], bool]:
    """Return a function that tests whether a client identifier matches the pattern.

    `*` stands for any characters or none; every other character stands for itself.
    """
    from gateway.where.language.expression import Wildcard
    from gateway.where.language.like import like_matcher

    return like_matcher(tuple(Wildcard.SEQUENCE if each == "*" else each for each in pattern))


DEVICE = "device"
DEVICE_PERSISTENT = "device_persistent"
APPLICATION = "application"
"""The classes: sessions that end with their connection, those that do not, and large receivers."""

APPLICATION_COUNT = 10
"""Messages to an application that are sent together, unless configured otherwise."""


class DeliveryClasses:
    """The first rule that matches a client applies, else its listener's, else its session's."""

    __slots__ = ("_classes", "_rules")

    def __init__(self, settings: DeliverySettings) -> None:
        self._classes = {
            name: DeliveryClass(name, EACH) for name in (DEVICE, DEVICE_PERSISTENT, APPLICATION)
        }
        self.change(settings)

    def change(self, settings: DeliverySettings) -> None:
        """Apply other policies from now on, and other rules to new clients."""
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


class DurabilityClasses:
    """The first matching entry applies, then the listener's class, then `default`.

    A message belongs to its publisher: an entry matches it by topic, or by the publishing client.
    """

    __slots__ = ("_clients", "_topics", "default")

    def __init__(
        self,
        entries: Iterable[DurabilityRule],
        default: str,
    ) -> None:
        self.change(entries, default)

    def change(self, entries: Iterable[DurabilityRule], default: str) -> None:
        """Apply other entries to new clients, and to topics that are looked up from now on."""
        self.default = DurabilityClass(commit_within(default))
        self._clients: list[tuple[Callable[[str], bool], DurabilityClass]] = []
        self._topics: list[tuple[str, DurabilityClass]] = []
        for place, entry in enumerate(entries):
            found = DurabilityClass(commit_within(entry.durability), place)
            if entry.client is not None:
                self._clients.append((client_matcher(entry.client), found))
            if entry.topic is not None:
                self._topics.append((entry.topic, found))

    def of_client(self, client_id: str, of_listener: DurabilityClass | None) -> DurabilityClass:
        """Return the class of what this client changes and, unless the topic has one, publishes."""
        for matches, found in self._clients:
            if matches(client_id):
                return found
        return self.default if of_listener is None else of_listener

    def of_topic(self, topic: str) -> DurabilityClass | None:
        """Return the configured class of a topic, None without one."""
        for topic_filter, found in self._topics:
            if topic_matches(topic_filter, topic):
                return found
        return None
