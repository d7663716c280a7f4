"""What the person who runs the gateway can set about its broker: `[broker]` and what is near it."""

from collections.abc import Iterator
from dataclasses import field
from enum import StrEnum

from gateway.settings.channel import ChannelSettings
from gateway.settings.checks import (
    boolean,
    expression,
    one_of,
    text,
    topic_beginning,
    topic_filter,
    unshared_filter,
    whole_number,
)
from gateway.settings.declaration import Mistake, key, settings_class
from gateway.settings.delivery import DeliverySettings
from gateway.settings.quantities import duration, seconds, size
from gateway.settings.storage import DurabilityRule
from gateway.settings.when_full import OF_ONE_QUEUE, WhenFull

NEVER = 0xFFFFFFFF
"""A Session Expiry Interval that does not end (MQTT 5, section 3.1.2.11.2)."""

ALIAS_CLIENT_BYTES = 32 * 1024
"""Bytes of one connection's topic names and the objects around them; 128 short names fit."""

ALIAS_SOFT_BYTES = 16 * 1024 * 1024
"""Bytes for all connections above which none gets a further alias."""

ALIAS_HARD_BYTES = 32 * 1024 * 1024
"""Bytes for all connections that are never exceeded: a connection that would loses all its
aliases."""

MAXIMUM_INFLIGHT = 1_000
"""Unacknowledged messages to one client: as many as a fast client leaves unacknowledged between two
reads; `inflight.MAXIMUM_BYTES` bounds their bytes."""

MAXIMUM_QUEUED_MESSAGES = 1_000_000
"""Deliveries that wait for one session: eleven days without the client at one a second."""

MAXIMUM_QUEUED_BYTES = 256 * 1024 * 1024
"""Bytes of one session's queue, on disk; 900,000 messages of 200 bytes fit."""

MAXIMUM_QUEUED_BYTES_TOTAL = 1024 * 1024 * 1024
"""Bytes on disk of all sessions; a message in several queues counts for each."""

MAXIMUM_SUBSCRIPTION_BYTES = 128 * 1024 * 1024
"""Bytes of all subscriptions: well over a million of some forty characters."""

MAXIMUM_ROUTE_BYTES = 16 * 1024 * 1024
"""Bytes of cached topics: some 5,000 of them with a subscriber or two each."""

MAXIMUM_TOPIC_LEVELS = 256
"""Levels of a topic name or filter; one of 65,536 would be as many nodes of every tree."""


class Unconfigured(StrEnum):
    """What a shared subscription is without a configured channel."""

    SHARED = "shared"  # as in MQTT: each message goes to a member at once
    TEMPORARY = "temporary"
    DURABLE = "durable"


@settings_class
class SubscriptionFilter:
    """A `$where` for clients that subscribe without one; of up to 1,000 the first match counts."""

    client: str = key(
        text,
        "its identifier, `*` for any characters",
    )
    topic_filter: str = key(
        topic_filter,
        "its topic filter, exactly",
        name="filter",
    )
    where: str = key(
        expression,
        "the expression",
    )


@settings_class
class RetainedExpiry:
    """How long messages are retained at most; of up to 100 tables the first match counts."""

    topic: str = key(
        unshared_filter,
        "topic filter",
    )
    maximum: int = key(
        seconds(1, NEVER),
        "their longest Message Expiry Interval, also without one",
    )


@settings_class
class BrokerSettings:
    """Limits of the broker; a request beyond one of subscriptions or expressions gets 0x97."""

    maximum_packet_size: int = key(
        size(1024, 256 * 1024 * 1024),
        "size of a packet; beyond: DISCONNECT 0x95",
        4 * 1024 * 1024,
    )
    connect_timeout: int = key(
        seconds(1, 3600),
        "time to CONNECT, with TLS and WebSocket",
        10,
    )
    topic_alias_maximum: int = key(
        whole_number(0, 65_535),
        "topic aliases of a client, each up to 64 KiB",
        16,
    )
    sys_interval: float = key(
        duration(0.1, 3600),
        "time between two updates of `$SYS`",
        1.0,
    )
    topic_alias_maximum_out: int = key(
        whole_number(0, 65_535),
        "topic aliases of the gateway for a client",
        128,
    )
    topic_alias_client_bytes: int = key(
        size(0, 1024**3),
        "memory for aliases of one client; beyond: the least recently used is reassigned",
        ALIAS_CLIENT_BYTES,
    )
    topic_alias_soft_bytes: int = key(
        size(0, 1024**4),
        "the same of all clients; beyond: no more are set",
        ALIAS_SOFT_BYTES,
    )
    topic_alias_hard_bytes: int = key(
        size(0, 1024**4),
        "the same; a client that would exceed this loses its aliases",
        ALIAS_HARD_BYTES,
    )
    receive_maximum: int = key(
        whole_number(1, 65_535),
        "unacknowledged messages of a client; beyond: 0x93 (MQTT 5)",
        10_000,
    )
    maximum_connect_size: int = key(
        size(1024, 256 * 1024 * 1024),
        "size of a packet before CONNECT is accepted",
        128 * 1024,
    )
    maximum_session_expiry: int = key(
        seconds(0, NEVER),
        "how long a session may outlive its connection",
        NEVER,
        shown="`4294967295`, for ever",
    )
    maximum_anonymous_session_expiry: int = key(
        seconds(0, NEVER),
        "the same without a proven user name",
        86_400,
    )
    maximum_share: int = key(
        whole_number(1, 100),
        "percent that one user may use of [what others leave](#shares)",
        50,
    )
    maximum_persistent_sessions: int = key(
        whole_number(0, 10_000_000),
        "beyond: 0x97 (MQTT 3.1.1: 3)",
        20_000,
    )
    maximum_inflight: int = key(
        whole_number(1, 65_535),
        "unacknowledged messages to a client",
        MAXIMUM_INFLIGHT,
    )
    maximum_queued_messages: int = key(
        whole_number(1, 100_000_000),
        "messages that [wait](#full-queues) for one session",
        MAXIMUM_QUEUED_MESSAGES,
    )
    maximum_queued_bytes: int = key(
        size(1024, 1024**4),
        "bytes that wait for one session",
        MAXIMUM_QUEUED_BYTES,
    )
    maximum_queued_bytes_total: int = key(
        size(1024, 1024**4),
        "the same for all sessions; a message counts for each",
        MAXIMUM_QUEUED_BYTES_TOTAL,
    )
    queue_when_full: WhenFull = key(
        one_of(*OF_ONE_QUEUE),
        "[what happens](#full-queues) then",
        WhenFull.DROP_NEWEST,
    )
    maximum_subscriptions: int = key(
        whole_number(1, 100_000_000),
        "of a client",
        200_000,
    )
    maximum_filtered_subscriptions: int = key(
        whole_number(0, 100_000_000),
        "the same with a `$where`",
        64,
    )
    maximum_conflated_topics: int = key(
        whole_number(0, 100_000_000),
        "of a client under [`$every`](delivery.md#the-newest-message); beyond: sent at once",
        10_000,
    )
    maximum_conflated_topics_total: int = key(
        whole_number(0, 100_000_000),
        "the same for all clients",
        50_000,
    )
    maximum_shared_subscriptions: int = key(
        whole_number(0, 100_000_000),
        "of a client",
        1_000,
    )
    maximum_expressions: int = key(
        whole_number(0, 1_000_000),
        "distinct `$where` of all clients",
        10_000,
    )
    maximum_subscription_bytes: int = key(
        size(1024, 1024**4),
        "size of all subscriptions",
        MAXIMUM_SUBSCRIPTION_BYTES,
    )
    maximum_route_bytes: int = key(
        size(0, 1024**4),
        "cache of published topics; 0: none",
        MAXIMUM_ROUTE_BYTES,
    )
    unconfigured_channels: Unconfigured = key(
        one_of(*Unconfigured),
        "shared subscriptions without a [channel](channels.md)",
        Unconfigured.SHARED,
    )
    maximum_channels: int = key(
        whole_number(1, 100_000),
        "channels; beyond: shared subscriptions",
        1_000,
    )
    maximum_topic_levels: int = key(
        whole_number(1, 65_536),
        "beyond: 0x90 for a topic (QoS 0: DISCONNECT), 0x8F for a filter",
        MAXIMUM_TOPIC_LEVELS,
    )
    maximum_topic_length: int = key(
        size(1, 65_535),
        "likewise",
        65_535,
    )
    check_payload_format: bool = key(
        boolean,
        "refuse (0x99, QoS 0: DISCONNECT) payloads marked as UTF-8 that are not",
        default=False,
    )
    remembered_topics: int = key(
        whole_number(0, 10_000),
        "topics whose last message [queries](../operate/query.md#queries) know",
        0,
    )
    response_information: str | None = key(
        topic_beginning,
        "first levels of response topics, if requested",
        None,
    )
    p2p: bool = key(
        boolean,
        "[peer to peer](#peer-to-peer) topics",
        default=False,
    )
    failed_login_delay: float = key(
        duration(0, 60),
        "delay after a wrong password, [doubled each time](access.md#failed-logins)",
        1.0,
    )

    # of other tables, and of this machine
    subscription_filters: tuple[SubscriptionFilter, ...] = ()
    retained_expiry: tuple[RetainedExpiry, ...] = ()
    durability: tuple[DurabilityRule, ...] = ()  # the first that matches applies
    default_durability: str = "commit"  # if none matches
    channels: tuple[ChannelSettings, ...] = ()
    delivery: DeliverySettings = field(default_factory=DeliverySettings)
    memory_limit: int = 512 * 1024 * 1024  # bytes of all that is held for clients

    def mistakes(self, given: frozenset[str]) -> Iterator[Mistake]:  # noqa: ARG002 - a shape
        """Yield conflicts."""
        soft, hard = self.topic_alias_soft_bytes, self.topic_alias_hard_bytes
        if soft > hard:
            allowed = f"at most topic_alias_hard_bytes, which is {hard}"
            yield "topic_alias_soft_bytes", soft, allowed
