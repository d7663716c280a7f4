"""Every section and key of the configuration file with the check of its value."""

from gateway.config.checks import (
    Check,
    boolean,
    bytes_a_day,
    duration,
    duration_from,
    fleet_url,
    gateway_id,
    number,
    one_of,
    permissions,
    size,
    size_from,
    stream,
    text,
    texts,
    topic_beginning,
    topic_prefix,
    unix_path,
    whole_number,
)
from gateway.config.durability import durability

Section = dict[str, Check]

PACKET_SIZE = whole_number(1024, 256 * 1024 * 1024)

GATEWAY: Section = {"id": gateway_id}

LISTENER: Section = {
    "host": text,
    "port": whole_number(1, 65_535),
    "allow_anonymous": boolean,
    "password_file": text,
    "acl_file": text,
    "path": unix_path,
    "mode": permissions,
    "tls_certificate": text,
    "tls_key": text,
    "client_ca": text,
    "tls_identity": one_of("cn"),
    "websocket": boolean,
    "websocket_origins": texts,
    "maximum_connections": whole_number(1, 1_000_000),
    "maximum_packet_size": PACKET_SIZE,
    "maximum_keep_alive": whole_number(1, 65_535),
    "where_identity": boolean,
    "connection_rate": number(0.01, 100_000),
    "connection_burst": whole_number(1, 1_000_000),
    "durability": durability,
}

BROKER: Section = {
    "maximum_packet_size": PACKET_SIZE,
    "maximum_connect_size": PACKET_SIZE,
    "connect_timeout": whole_number(1, 3600),
    "failed_login_delay": number(0, 60),
    "topic_alias_maximum": whole_number(0, 65_535),
    "topic_alias_maximum_out": whole_number(0, 65_535),
    "topic_alias_client_bytes": whole_number(0, 1024**3),
    "topic_alias_soft_bytes": whole_number(0, 1024**4),
    "topic_alias_hard_bytes": whole_number(0, 1024**4),
    "receive_maximum": whole_number(1, 65_535),
    "maximum_session_expiry": whole_number(0, 0xFFFFFFFF),
    "maximum_persistent_sessions": whole_number(0, 10_000_000),
    "maximum_inflight": whole_number(1, 65_535),
    "maximum_queued_messages": whole_number(1, 100_000_000),
    "maximum_queued_bytes": whole_number(1024, 1024**4),
    "maximum_queued_bytes_total": whole_number(1024, 1024**4),
    "queue_when_full": one_of("reject", "drop-oldest", "drop-newest"),
    "maximum_subscriptions": whole_number(1, 100_000_000),
    "maximum_subscription_bytes": whole_number(1024, 1024**4),
    "maximum_route_bytes": whole_number(0, 1024**4),
    "maximum_filtered_subscriptions": whole_number(0, 100_000_000),
    "maximum_expressions": whole_number(0, 1_000_000),
    "maximum_topic_levels": whole_number(1, 65_536),
    "maximum_topic_length": whole_number(1, 65_535),
    "check_payload_format": boolean,
    "response_information": topic_beginning,
    "p2p": boolean,
    "sys_interval": number(0.1, 3600),
}

MEMORY: Section = {"limit": size_from(16 * 1024 * 1024)}

ACCESS: Section = {"operators": texts}

ROLE: Section = {
    "name": text,
    "users": texts,
    "anonymous": boolean,
    "read": texts,
    "write": texts,
    "readwrite": texts,
    "deny": texts,
}

STORAGE: Section = {
    "durability": durability,
    "commit_delay": whole_number(0, 1_000),
    "write_budget": bytes_a_day,
    "endurance": size,
}

DURABILITY: Section = {"client": text, "topic": text, "class": durability}

HISTORY: Section = {
    "keep": duration,
    "maximum_bytes": whole_number(64 * 1024, 1024**4),
}

METRICS: Section = {"host": text, "port": whole_number(1, 65_535), "allow_anonymous": boolean}

SUBSCRIPTION_FILTER: Section = {"client": text, "filter": text, "where": text}

RULE: Section = {
    "topic": text,
    "where": text,
    "stream": stream,
    "lane": one_of("live", "backlog"),
}

BOUNDS: Section = {
    "maximum_bytes": size_from(64 * 1024),
    "maximum_messages": whole_number(1, 1_000_000_000),
    "maximum_age": duration,
}

OUTBOX: Section = {
    **BOUNDS,
    "when_full": one_of("reject", "drop-oldest", "drop-newest", "drop-lowest-priority"),
    "survive": duration,
    "expected_rate": number(0.0001, 1_000_000),
    "expected_bytes": size_from(1),
}

STREAM: Section = {
    **BOUNDS,
    "name": stream,
    "priority": whole_number(1, 10),
    "when_full": one_of("reject", "drop-oldest", "drop-newest"),
    "mode": one_of("all", "latest", "expire"),
    "expire_after": duration,
}

UPLINK: Section = {
    "url": fleet_url,
    "directory": text,
    "username": text,
    "password_file": text,
    "ca_file": text,
    "client_id": text,
    "prefix": topic_prefix,
    "identity": boolean,
    "window": whole_number(1, 65_535),
    "puback_timeout": duration_from(1),
    "session_expiry": duration,
    "topic_alias_maximum": whole_number(0, 65_535),
    "backlog_messages_per_second": whole_number(1, 1_000_000),
    "backlog_bytes_per_second": size_from(256),
    "batch": one_of("zlib"),
    "batch_messages": whole_number(2, 10_000),
    "batch_bytes": size_from(1024),
    "batch_delay": number(0.01, 60),
    "schedule": texts,
    "budget": bytes_a_day,
    "recall": boolean,
}

SERIAL: Section = {
    "port": text,
    "format": one_of("frames", "json"),
    "baud": whole_number(50, 4_000_000),
    "node": text,
}

SIMULATOR: Section = {"port": text, "node": text, "interval": number(0.01, 3600)}

TABLES = (
    "gateway",
    "access",
    "broker",
    "uplink",
    "outbox",
    "memory",
    "storage",
    "history",
    "metrics",
)
ARRAYS = ("durability", "listener", "serial", "simulator", "subscription_filter")
