"""The settings of a gateway as its configuration file gives them, checked for form."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ListenerConfig:
    """Where clients connect and under which limits; None stands for no limit of its own.

    Anonymous access is allowed on loopback and on a Unix socket unless said otherwise.
    """

    host: str = "127.0.0.1"
    port: int = 1883
    allow_anonymous: bool | None = None
    password_file: str | None = None
    path: str | None = None  # a Unix socket, instead of host and port
    mode: int = 0o660  # permissions of that socket
    tls_certificate: str | None = None
    tls_key: str | None = None  # None: in the certificate's file
    client_ca: str | None = None
    tls_identity: str | None = None
    websocket: bool = False
    websocket_origins: tuple[str, ...] | None = None  # None: any
    maximum_connections: int | None = None
    maximum_packet_size: int | None = None  # bytes
    maximum_keep_alive: int | None = None  # seconds
    where_identity: bool = True
    connection_rate: float | None = None  # a second
    connection_burst: int | None = None  # None: what the rate gives in a second, at least 1
    durability: str | None = None
    acl_file: str | None = None


@dataclass(frozen=True, slots=True)
class BrokerConfig:
    """Limits of the broker: bytes, seconds and counts."""

    maximum_packet_size: int = 4 * 1024 * 1024
    connect_timeout: int = 10
    topic_alias_maximum: int = 16
    sys_interval: float = 1.0
    topic_alias_maximum_out: int = 128
    topic_alias_client_bytes: int = 32 * 1024
    topic_alias_soft_bytes: int = 16 * 1024 * 1024
    topic_alias_hard_bytes: int = 32 * 1024 * 1024
    receive_maximum: int = 10_000
    maximum_connect_size: int = 128 * 1024
    maximum_session_expiry: int = 0xFFFFFFFF  # for ever
    maximum_persistent_sessions: int = 20_000
    maximum_inflight: int = 1_000
    maximum_queued_messages: int = 1_000_000
    maximum_queued_bytes: int = 256 * 1024 * 1024
    maximum_queued_bytes_total: int = 1024 * 1024 * 1024
    queue_when_full: str = "reject"
    maximum_subscriptions: int = 200_000
    maximum_filtered_subscriptions: int = 64
    maximum_expressions: int = 10_000
    maximum_subscription_bytes: int = 128 * 1024 * 1024
    maximum_route_bytes: int = 16 * 1024 * 1024
    maximum_topic_levels: int = 256
    maximum_topic_length: int = 65_535
    check_payload_format: bool = False
    response_information: str | None = None
    p2p: bool = False
    failed_login_delay: float = 1.0  # seconds, the first; it doubles


@dataclass(frozen=True, slots=True)
class RoleConfig:
    """Topic filters that some users may read or write; in a name of `users` `*` is anything.

    In the filters `%c` and `%u` stand for the client identifier and the user name.
    """

    name: str
    users: tuple[str, ...] = ()
    anonymous: bool = False
    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    readwrite: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AccessConfig:
    """Who may command the gateway and read its log from anywhere, and the roles of users."""

    operators: tuple[str, ...] = ()
    roles: tuple[RoleConfig, ...] = ()


@dataclass(frozen=True, slots=True)
class SubscriptionFilterConfig:
    """An expression for clients that subscribe to exactly `filter` without one of their own.

    `client` is a client identifier in which `*` stands for any characters.
    """

    client: str
    filter: str
    where: str


@dataclass(frozen=True, slots=True)
class RuleConfig:
    """What goes up to the fleet: messages on `topic` for which `where` is TRUE."""

    topic: str
    where: str | None = None
    stream: str = "main"
    lane: str = "live"


@dataclass(frozen=True, slots=True)
class StreamConfig:
    """What of one stream may wait for the fleet; None is no bound, ages are in seconds."""

    name: str
    priority: int = 5
    maximum_bytes: int | None = None
    maximum_messages: int | None = None
    maximum_age: int = 0  # 0: no bound
    when_full: str = "reject"
    mode: str = "all"
    expire_after: int = 0  # of mode "expire"


@dataclass(frozen=True, slots=True)
class OutboxConfig:
    """What of all streams may wait for the fleet; None is no bound, the age is in seconds.

    `survive` promises an outage of so many seconds (0: nothing) at the expected load.
    """

    maximum_bytes: int = 1024 * 1024 * 1024
    maximum_messages: int | None = None
    maximum_age: int = 0  # 0: no bound
    when_full: str = "reject"
    survive: int = 0
    expected_rate: float | None = None  # messages a second
    expected_bytes: int | None = None  # of a topic and its payload


@dataclass(frozen=True, slots=True)
class UplinkConfig:
    """The fleet's broker or a directory; with neither, a directory in the data folder."""

    url: str | None = None
    directory: str | None = None
    username: str | None = None
    password_file: str | None = None
    ca_file: str | None = None
    client_id: str | None = None
    prefix: str = "tidegate"
    identity: bool = False
    window: int = 100  # messages
    puback_timeout: int = 30  # seconds
    session_expiry: int = 86_400  # seconds
    topic_alias_maximum: int = 128
    backlog_messages_per_second: int | None = None  # None: as many as go
    backlog_bytes_per_second: int | None = None
    batch: str | None = None
    batch_messages: int = 500
    batch_bytes: int = 64 * 1024
    batch_delay: float = 0.2  # seconds
    schedule: tuple[str, ...] = ()
    budget: int | None = None  # bytes a day
    recall: bool = False
    rules: tuple[RuleConfig, ...] = ()
    streams: tuple[StreamConfig, ...] = ()


@dataclass(frozen=True, slots=True)
class MemoryConfig:
    """What clients may make the gateway hold; None is a share of the machine's memory."""

    limit: int | None = None  # bytes


@dataclass(frozen=True, slots=True)
class StorageConfig:
    """What is written to the card and when; None stands for no bound, and for an estimate."""

    durability: str = "commit"
    commit_delay: int = 5  # milliseconds
    write_budget: int | None = None  # bytes a day
    endurance: int | None = None  # bytes that the card bears in its life


@dataclass(frozen=True, slots=True)
class DurabilityConfig:
    """A durability class for the clients that `client` names, or for what `topic` matches.

    One of the two is given. `client` is a client identifier in which `*` stands for any characters.
    """

    durability: str
    client: str | None = None
    topic: str | None = None


@dataclass(frozen=True, slots=True)
class HistoryConfig:
    """How many seconds of messages are kept, 0 for none, and in how many bytes."""

    keep: int = 0
    maximum_bytes: int = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class MetricsConfig:
    """Where the figures can be scraped; without users, so beyond loopback only if said so."""

    host: str = "127.0.0.1"
    port: int = 9234
    allow_anonymous: bool | None = None


@dataclass(frozen=True, slots=True)
class SerialConfig:
    """A serial port with a node behind it; `node` is by default the port's base name."""

    port: str
    format: str = "frames"
    baud: int = 115_200
    node: str | None = None


@dataclass(frozen=True, slots=True)
class SimulatorConfig:
    """A simulated sensor node, which makes the pseudo-terminal `port` and speaks on it."""

    port: str
    node: str = "demo"
    interval: float = 1.0


@dataclass(frozen=True, slots=True)
class Configuration:
    """Everything that a configuration file says; `file` is its path, for messages."""

    file: str
    gateway_id: str
    listeners: tuple[ListenerConfig, ...] = (ListenerConfig(),)
    access: AccessConfig = field(default_factory=AccessConfig)
    broker: BrokerConfig = field(default_factory=BrokerConfig)
    uplink: UplinkConfig | None = None
    outbox: OutboxConfig = field(default_factory=OutboxConfig)
    serial: tuple[SerialConfig, ...] = ()
    simulators: tuple[SimulatorConfig, ...] = ()
    subscription_filters: tuple[SubscriptionFilterConfig, ...] = ()
    memory: MemoryConfig = field(default_factory=MemoryConfig)
    storage: StorageConfig = field(default_factory=StorageConfig)
    durability: tuple[DurabilityConfig, ...] = ()
    history: HistoryConfig = field(default_factory=HistoryConfig)
    metrics: MetricsConfig | None = None
