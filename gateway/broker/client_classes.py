"""Which delivery and durability class a client and a message have, as the configuration says."""

from collections.abc import Callable, Iterable, Iterator

from gateway.mqtt.delivery_policy import COUNT, DELAY, EACH, DeliveryPolicy
from gateway.mqtt.topics import topic_matches
from gateway.session.delivery_class import DeliveryClass
from gateway.session.durability_class import DurabilityClass
from gateway.settings.delivery import DeliveryClassSettings, DeliverySettings
from gateway.settings.durability import commit_within
from gateway.settings.storage import DurabilityRule


def client_matcher(pattern: str) -> Callable[[str], bool]:
    """Return a function that says whether a client identifier is one of those meant.

    `*` stands also for no character; every other character stands for itself.
    """
    from gateway.where.language.expression import Wildcard
    from gateway.where.language.like import like_matcher

    return like_matcher(tuple(Wildcard.SEQUENCE if each == "*" else each for each in pattern))


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


class DurabilityClasses:
    """The first entry that fits holds, then what the listener says, then `default`.

    A message is its publisher's: an entry fits it by its topic, or by the client that published it.
    """

    __slots__ = ("_clients", "_topics", "default")

    def __init__(
        self,
        entries: Iterable[DurabilityRule],
        default: str,
    ) -> None:
        self.change(entries, default)

    def change(self, entries: Iterable[DurabilityRule], default: str) -> None:
        """Let other entries hold for clients that come, and for topics that are asked about."""
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
        """Return the class of what this client changes, and publishes where no topic says else."""
        for matches, found in self._clients:
            if matches(client_id):
                return found
        return self.default if of_listener is None else of_listener

    def of_topic(self, topic: str) -> DurabilityClass | None:
        """Return the class that the configuration names for a topic, None if it names none."""
        for topic_filter, found in self._topics:
            if topic_matches(topic_filter, topic):
                return found
        return None
