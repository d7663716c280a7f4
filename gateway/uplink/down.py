"""The way down: messages that the fleet publishes for this gateway are published here."""

import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from gateway.broker.own_names import UPLINK_CLIENT
from gateway.counters import Counters
from gateway.hashes import blake2b
from gateway.mqtt.errors import MqttError
from gateway.mqtt.message import Message
from gateway.mqtt.packets import Publish, SubscriptionRequest, message_size
from gateway.mqtt.reason_codes import FAILURE, ReasonCode
from gateway.mqtt.topics import SHARED_PREFIX, check_topic_name, topic_matches
from gateway.uplink.envelope import has_hop, with_hop
from gateway.uplink.rules.targets import fill

logger = logging.getLogger(__name__)

MAXIMUM_WAITING = 1_000
"""Messages that wait here. With MQTT 5 the fleet sends a tenth of them."""

MAXIMUM_WAITING_BYTES = 16 * 1024 * 1024
"""Bytes of these; one message may wait whatever its size.

Messages beyond either bound stay with the fleet, with all after them, until those that wait are
published. Then the gateway connects again, and the fleet resends them.
"""

RETRY_SECONDS = 1.0
"""Seconds until a message that was refused here is tried again."""

ATTEMPTS_MAX = 300
"""Tries after which a message is delivered to every receiver that can accept it, and lost for the
others: one full queue must not block everything that comes down."""

QUOTA_CODES = (ReasonCode.QUOTA_EXCEEDED, ReasonCode.MESSAGE_RATE_TOO_HIGH)
"""Refusals that may be temporary."""

NEW_SUBSCRIPTION = 1
"""Retain Handling: retained messages are sent only with the first subscription of a session."""


@dataclass(frozen=True, slots=True)
class DownRule:
    """One `[[uplink.down]]`; `may_write` returns whether its user may write a local topic."""

    topic: str
    local: str
    qos: int = 1
    may_write: Callable[[str], bool] = lambda topic: not topic.startswith("$")


def subscription(topic_filter: str, qos: int) -> SubscriptionRequest:
    """Return how the topic filter of a rule is subscribed to at the fleet's broker."""
    return SubscriptionRequest(
        topic_filter,
        qos,
        no_local=not topic_filter.startswith(SHARED_PREFIX),  # [MQTT-3.8.3-4]
        retain_as_published=True,
        retain_handling=NEW_SUBSCRIPTION,
    )


class Seen(Protocol):
    """Remembers accepted messages across restarts (`storage/state/uplink_state.py`)."""

    def has(self, packet_id: int, value: int) -> bool:
        """Return whether the message was accepted before."""
        ...

    def remember(self, packet_id: int, value: int) -> None:
        """Note it in the pending batch."""
        ...


@dataclass(slots=True)
class _Waiting:
    publish: Publish
    hash: int
    acknowledge: Callable[[], None]


class Down:
    """Publishes messages from the fleet, in order, and acknowledges those that are on disk.

    A message that is refused here waits, and later ones stay at the fleet: `fetch_again` returns
    when to reconnect for them. A repeated message, whose acknowledgement was lost, is recognised by
    packet identifier and content. `refusal` is why a message is refused. `publish` is called with a
    message, and whether it is for every receiver that can accept it; even then it may refuse.
    """

    def __init__(
        self,
        gateway_id: str,
        rules: Sequence[DownRule],
        seen: Seen,
        counters: Counters,
        *,
        publish: Callable[[Message, bool], ReasonCode],
        when_on_disk: Callable[[Callable[[], None]], None],
        later: Callable[[float, Callable[[], None]], object],
        refusal: Callable[[], str] = lambda: "nothing fits",
    ) -> None:
        self.fetch_again = False
        self._gateway_id = gateway_id
        self._counters = counters
        self.change(rules)
        self._seen = seen
        self._publish = publish
        self._when_on_disk = when_on_disk
        self._later = later
        self._refusal = refusal
        self._waiting: deque[_Waiting] = deque()
        self._waiting_bytes = 0
        self._delayed = False
        self._refused = False  # since the connection began, a message was not acknowledged
        self._tries = 0  # of the first message
        for name in ("down", "down_repeated", "down_dropped", "down_deferred", "down_too_large"):
            counters.add(f"tidegate/uplink/{name}", 0)

    def change(self, rules: Sequence[DownRule], counters: Counters | None = None) -> None:
        """Use these rules from now on, and at the fleet's broker from the next connection."""
        self._counters = counters or self._counters
        gateway_id = self._gateway_id
        self._rules = [(rule.topic.replace("{gateway}", gateway_id), rule) for rule in rules]

    @property
    def subscriptions(self) -> list[SubscriptionRequest]:
        """The subscriptions at the fleet's broker."""
        return [subscription(topic, rule.qos) for topic, rule in self._rules]

    def wants(self, topic: str) -> bool:
        """Return whether a rule brings messages of the topic down."""
        return any(topic_matches(topic_filter, topic) for topic_filter, _ in self._rules)

    def receive(self, publish: Publish, acknowledge: Callable[[], None], *, resumed: bool) -> None:
        """Accept a message of a connection; `resumed` means that its session existed before."""
        value = _hash_of(publish)
        if publish.qos and publish.dup and resumed and self._repeated(publish, value, acknowledge):
            self._counters.add("tidegate/uplink/down_repeated")
            return
        if self._refused or not self._has_capacity(publish):
            self._refuse(publish)
            return
        self._waiting.append(_Waiting(publish, value, acknowledge))
        self._waiting_bytes += message_size(publish)
        if not self._delayed:
            self._go_on()

    def begin(self) -> None:
        """Begin a new connection, on which the fleet resends unacknowledged messages."""
        self.fetch_again = self._refused = False

    def _has_capacity(self, publish: Publish) -> bool:
        waiting, size = self._waiting, self._waiting_bytes + message_size(publish)
        return not waiting or (len(waiting) < MAXIMUM_WAITING and size <= MAXIMUM_WAITING_BYTES)

    def _refuse(self, publish: Publish) -> None:
        """Refuse a message, which stays at the fleet; later ones must not overtake it.

        At QoS 0 it is lost.
        """
        name = "down_deferred" if publish.qos else "down_dropped"
        self._counters.add(f"tidegate/uplink/{name}")
        if not self._refused:
            self._refused = True
            logger.warning(
                "%d messages (%d bytes) from the fleet wait here; "
                "its broker stores the others until then",
                len(self._waiting),
                self._waiting_bytes,
            )

    def _repeated(self, publish: Publish, value: int, acknowledge: Callable[[], None]) -> bool:
        if self._seen.has(publish.packet_id, value):
            self._when_on_disk(acknowledge)
            return True
        for each in self._waiting:
            if (each.publish.packet_id, each.hash) == (publish.packet_id, value):
                each.acknowledge = acknowledge
                return True
        return False

    def _go_on(self) -> None:
        self._delayed = False
        while self._waiting:
            each = self._waiting[0]
            if not self._publish_queued(each.publish):
                self._wait(each.publish)
                return
            self._waiting.popleft()
            self._waiting_bytes -= message_size(each.publish)
            self._tries = 0
            if each.publish.qos:
                self._seen.remember(each.publish.packet_id, each.hash)
            self._when_on_disk(each.acknowledge)
        self.fetch_again = self._refused

    def _wait(self, publish: Publish) -> None:
        self._tries += 1
        if self._tries == 1:
            logger.warning(
                "%.80r came from the fleet and waits: %s", publish.topic, self._refusal()
            )
        self._delayed = True
        self._later(RETRY_SECONDS, self._go_on)

    def _publish_queued(self, publish: Publish) -> bool:
        """Publish a message here; return False if it is refused for now."""
        local = self._local_topic(publish)
        if local is None:
            self._counters.add("tidegate/uplink/down_dropped")
            return True
        forced = self._tries >= ATTEMPTS_MAX
        code = self._publish(self._message(publish, local), forced)
        if code in QUOTA_CODES and publish.qos:
            return False
        if code >= FAILURE:
            logger.warning(
                "%.80r came from the fleet and was refused here: %s", publish.topic, code.name
            )
            self._counters.add("tidegate/uplink/down_dropped")
        else:
            if forced:
                logger.warning("%.80r is delivered only to receivers with capacity", publish.topic)
            self._counters.add("tidegate/uplink/down")
        return True

    def _local_topic(self, publish: Publish) -> str | None:
        """Return the local topic of the message; None, after logging it, if it has none."""
        if has_hop(publish.properties.user_properties, self._gateway_id):
            logger.warning("%.80r came from the fleet again: a loop ends here", publish.topic)
            return None
        for topic_filter, rule in self._rules:
            if topic_matches(topic_filter, publish.topic):
                local = fill(rule.local, self._gateway_id, publish.topic)
                if _is_topic(local) and rule.may_write(local):
                    return local
                logger.warning(
                    "%.80r from the fleet may not be published as %.80r", publish.topic, local
                )
                return None
        logger.warning(
            "%.80r came from the fleet, and no [[uplink.down]] matches it", publish.topic
        )
        return None

    def _message(self, publish: Publish, local: str) -> Message:
        message = Message(
            local, publish.payload, publish.qos, publish.retain, client_id=UPLINK_CLIENT
        )
        message.set_properties(publish.properties)
        properties = publish.properties.user_properties
        message.user_properties = with_hop(properties, self._gateway_id)
        return message


def _is_topic(topic: str) -> bool:
    try:
        check_topic_name(topic)
    except MqttError:
        return False
    return not topic.startswith("$")


def _hash_of(publish: Publish) -> int:
    """Return 63 bits that distinguish messages."""
    text = publish.topic.encode()
    data = b"%d %b %b" % (len(text), text, publish.payload)
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "big") >> 1
