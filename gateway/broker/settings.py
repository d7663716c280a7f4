"""What the person who runs the gateway can set about its broker."""

from dataclasses import dataclass, field

from gateway.broker.channels.settings import ChannelsSettings
from gateway.broker.delivery_classes import DeliverySettings
from gateway.broker.publishing.durability_classes import DurabilityEntry
from gateway.broker.publishing.topic_limits import MAXIMUM_TOPIC_LEVELS
from gateway.broker.subscribing.subscription_filters import SubscriptionFilter
from gateway.mqtt.aliases.alias_budget import CLIENT_BYTES, HARD_BYTES, SOFT_BYTES
from gateway.mqtt.topics import TOPIC_LIMIT
from gateway.routing.router import MAXIMUM_BYTES as MAXIMUM_SUBSCRIPTION_BYTES
from gateway.session.limits import MAXIMUM_INFLIGHT
from gateway.session.queue.bounds import MAXIMUM_BYTES, MAXIMUM_MESSAGES
from gateway.session.queue.memory import MAXIMUM_DISK_BYTES
from gateway.session.session import NEVER

MAXIMUM_ADMISSION_BYTES = 16 * 1024 * 1024
"""Bytes of what is known of the topics that were published to lately: some 5,000 of them with a
subscriber or two each."""

RECEIVE_MAXIMUM = 10_000
"""QoS 1 and 2 messages of one client without acknowledgement: more than one read can hold, so that
who sends without waiting, against the rules, meets it only when something else is slow."""


@dataclass(frozen=True, slots=True)
class BrokerSettings:
    """Limits of the broker; sizes in bytes, times in seconds."""

    maximum_packet_size: int = 4 * 1024 * 1024
    maximum_connect_size: int = 128 * 1024  # of a packet before CONNECT is accepted
    memory_limit: int = 512 * 1024 * 1024  # of all that is held for clients
    connect_timeout: int = 10
    failed_login_delay: float = 1.0  # seconds, the first; it doubles
    receive_maximum: int = RECEIVE_MAXIMUM  # QoS 1 and 2 messages of one client
    topic_alias_maximum: int = 16  # that clients set on one connection
    topic_alias_maximum_out: int = 128  # that we set on one connection
    topic_alias_client_bytes: int = CLIENT_BYTES
    topic_alias_soft_bytes: int = SOFT_BYTES
    topic_alias_hard_bytes: int = HARD_BYTES
    response_information: str | None = None  # told to clients that ask for it
    p2p: bool = False  # peer to peer topics
    check_payload_format: bool = False
    maximum_topic_levels: int = MAXIMUM_TOPIC_LEVELS
    maximum_topic_length: int = TOPIC_LIMIT  # bytes
    maximum_session_expiry: int = NEVER  # seconds
    maximum_anonymous_session_expiry: int = 86_400  # seconds, of who has no proven user name
    maximum_share: int = 50  # percent of what others leave, for one user or address
    maximum_persistent_sessions: int = 20_000  # with and without a connection
    maximum_inflight: int = MAXIMUM_INFLIGHT  # of one session
    maximum_queued_messages: int = MAXIMUM_MESSAGES  # of one session
    maximum_queued_bytes: int = MAXIMUM_BYTES  # of one session
    queue_when_full: str = "drop-newest"  # a value of WhenFull
    maximum_queued_bytes_total: int = MAXIMUM_DISK_BYTES  # of all sessions
    maximum_subscriptions: int = 200_000  # of one client
    maximum_subscription_bytes: int = MAXIMUM_SUBSCRIPTION_BYTES  # of all clients
    maximum_route_bytes: int = MAXIMUM_ADMISSION_BYTES  # of the topics published to lately
    maximum_filtered_subscriptions: int = 64  # of one client, $where language section 11
    maximum_shared_subscriptions: int = 1_000  # of one client: a message asks each group it meets
    maximum_expressions: int = 10_000  # distinct ones, $where language section 11
    subscription_filters: tuple[SubscriptionFilter, ...] = ()  # attached to subscriptions
    durability: tuple[DurabilityEntry, ...] = ()  # the first that fits holds
    default_durability: float | None = 0.0  # `DurabilityClass.commit_within` where none fits
    channels: ChannelsSettings = field(default_factory=ChannelsSettings)
    delivery: DeliverySettings = field(default_factory=DeliverySettings)
