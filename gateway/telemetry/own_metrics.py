"""Prometheus metadata of the figures that Mosquitto has too, and of Tidegate's own."""

from gateway.telemetry.bridge_metrics import BRIDGE
from gateway.telemetry.figure import Figure, Kind, own
from gateway.telemetry.uplink_metrics import UPLINK_FIGURES

COUNTER, GAUGE = Kind.COUNTER, Kind.GAUGE

A_MINUTE = "a minute, averaged over so many minutes"

BROKER_FIGURES = (
    Figure("uptime", GAUGE, "Seconds since the start.", "tidegate_uptime_seconds"),
    Figure("clients/connected", GAUGE, "Clients that are connected."),
    Figure("clients/disconnected", GAUGE, "Persistent sessions without a connection."),
    Figure("clients/total", GAUGE, "Sessions, connected or not.", "tidegate_clients"),
    Figure("clients/maximum", GAUGE, "Most clients connected at one time."),
    Figure("clients/active", GAUGE, "Older name of clients connected."),
    Figure("clients/inactive", GAUGE, "Older name of clients disconnected."),
    Figure("clients/expired", COUNTER, "Sessions that ended by their expiry interval."),
    Figure("messages/received", COUNTER, "Control packets received."),
    Figure("messages/sent", COUNTER, "Control packets sent."),
    Figure("publish/messages/received", COUNTER, "PUBLISH packets received."),
    Figure("publish/messages/sent", COUNTER, "PUBLISH packets sent."),
    Figure("publish/messages/dropped", COUNTER, "Messages dropped for a receiver."),
    Figure("publish/messages/expired", COUNTER, "Messages that expired before they were sent."),
    Figure("publish/bytes/received", COUNTER, "Payload bytes of PUBLISH packets received."),
    Figure("publish/bytes/sent", COUNTER, "Payload bytes of PUBLISH packets sent."),
    Figure("bytes/received", COUNTER, "Bytes received from the network."),
    Figure("bytes/sent", COUNTER, "Bytes sent to the network."),
    Figure("subscriptions/count", GAUGE, "Subscriptions of all sessions."),
    Figure("shared_subscriptions/count", GAUGE, "Shared subscriptions of all sessions."),
    Figure("retained messages/count", GAUGE, "Retained messages."),
    Figure("store/messages/count", GAUGE, "Messages retained or waiting for a session."),
    Figure("store/messages/bytes", GAUGE, "Bytes of messages retained or waiting for a session."),
    Figure("messages/stored", GAUGE, "Older name of store messages."),
    Figure("load/messages/received/<minutes>min", GAUGE, f"Control packets received {A_MINUTE}."),
    Figure("load/messages/sent/<minutes>min", GAUGE, f"Control packets sent {A_MINUTE}."),
    Figure("load/publish/received/<minutes>min", GAUGE, f"PUBLISH packets received {A_MINUTE}."),
    Figure("load/publish/sent/<minutes>min", GAUGE, f"PUBLISH packets sent {A_MINUTE}."),
    Figure("load/publish/dropped/<minutes>min", GAUGE, f"Messages given up {A_MINUTE}."),
    Figure("load/bytes/received/<minutes>min", GAUGE, f"Bytes received {A_MINUTE}."),
    Figure("load/bytes/sent/<minutes>min", GAUGE, f"Bytes sent {A_MINUTE}."),
    Figure("load/connections/<minutes>min", GAUGE, f"CONNECT packets {A_MINUTE}."),
    Figure("load/sockets/<minutes>min", GAUGE, f"Network connections {A_MINUTE}."),
)

CLOCK = (
    *own(
        "clock",
        GAUGE,
        {
            "synchronized": "1 while the wall clock is synchronized.",
            "uncertainty_ms": "Seconds by which the wall clock may be off, if known.",
            "offset_ms": "Seconds by which it was off before it was set the last time.",
        },
    ),
    *own(
        "clock",
        COUNTER,
        {
            "steps": "Times that the wall clock was set.",
            "acknowledged": "Clock records that the fleet acknowledged.",
            "refused": "Refusals of clock records.",
            "dropped": "Clock records dropped because too many waited.",
        },
    ),
)

HISTORY = (
    *own(
        "history",
        COUNTER,
        {
            "recorded": "Messages recorded in the history.",
            "skipped": "Messages that the history could not record.",
        },
    ),
)

STORAGE = (
    *own(
        "storage",
        COUNTER,
        {
            "commits": "Transactions on disk.",
            "rows": "Rows on disk.",
            "failures": "Commits that failed.",
            "elided_rows": "Rows that need not be written any more.",
            "device_flushes": "Flushes of the cache of the device.",
            "unreadable": "Rows that a start could not read.",
            "rejected": "Messages that the disk could not take.",
            "salvaged": "Rows that were salvaged from a damaged database.",
            "lost": "Rows of a damaged database that could not be read.",
        },
    ),
    *own(
        "storage",
        GAUGE,
        {
            "commit_delay": "Milliseconds by which a commit may be put off.",
            "commit_ms_mean": "Mean seconds of a commit.",
            "commit_ms_longest": "Seconds of the longest commit.",
            "commit_rows_mean": "Mean rows of a commit.",
            "commit_rows_most": "Most rows of a commit.",
            "pending_rows": "Rows gathered and not yet on disk.",
            "written_bytes": "Bytes written to storage since the start, less cancelled ones.",
            "written_per_day": "Bytes a day at the present rate of writing.",
            "write_budget": "Bytes that may be written in a day, 0 for any.",
            "stretch_percent": "Percent of its window that a commit waits.",
            "card_days": "Seconds that the device lasts at the present rate.",
        },
    ),
)

METRICS = own(
    "metrics",
    COUNTER,
    {
        "requests": "Requests answered here.",
        "refused": "Connections here beyond the maximum, or without a whole request in time.",
        "foreign_hosts": "Requests here whose Host is not this machine.",
    },
)

QUERIES = own(
    "queries",
    COUNTER,
    {
        "answered": "Queries of operators that were answered.",
        "refused": "Queries that were refused: malformed, or too many at once.",
        "unanswered": "Refused queries that were too many for more than a PUBACK.",
    },
)

TOPICS = own(
    "topics", COUNTER, {"forgotten": "Topics that were forgotten because others took their place."}
)

SYS = own(
    "sys",
    COUNTER,
    {
        "messages_sent": "Figures, alarms and log lines sent to subscribers.",
        "bytes_sent": "Bytes of their payloads.",
    },
)

LOG = own("log", COUNTER, {"dropped": "Log lines that standard error did not accept."})

CLIENTS = (
    *own(
        "clients",
        COUNTER,
        {
            "refused": "CONNECTs refused.",
            "protocol_errors": "Connections closed for what the client sent.",
            "not_authorized": "PUBLISHes to topics that the client may not write.",
            "errors": "Connections closed for a mistake of the gateway.",
        },
    ),
    *own(
        "access",
        COUNTER,
        {
            "subscriptions": "Topic filters of which the client may read nothing.",
            "wills": "Wills to topics that their client may not write.",
            "withheld": "QoS 0 messages that their connection might not read.",
            "held_back": "Messages put aside that their connection might not read then.",
            "takeovers": "Sessions ended by another user with the same client identifier.",
            "takeovers_refused": "CONNECTs with the client identifier of another user's session.",
            "logins_failed": "Logins with a wrong user name or password.",
            "logins_delayed": "Times that a login waited because of earlier failures.",
        },
    ),
    *own(
        "refused",
        COUNTER,
        {
            "topic_names": "Messages and wills whose topic was too long or deep.",
            "topic_filters": "Topic filters that were too long or deep.",
            "subscriptions": "Topic filters beyond what may be subscribed to.",
            "payload_formats": "Payloads said to be UTF-8 that are not.",
            "incoming": "QoS 2 messages beyond what a session may hold.",
            "crowded_topics": "Messages whose topic meets too many topic filters.",
            "wills": "CONNECTs with a will while the queues were full.",
            "consumers": "Consumers beyond what a channel may have.",
            "unacknowledging_consumers": "Consumers of durable channels that requested QoS 0.",
        },
    ),
    *own("sessions", COUNTER, {"rejected": "CONNECTs beyond the persistent sessions that may be."}),
    *own(
        "queues",
        GAUGE,
        {
            "messages": "Deliveries that wait in the queues of sessions.",
            "bytes": "Bytes that wait in the queues of sessions.",
            "memory_bytes": "Bytes of these in memory.",
            "disk_bytes": "Bytes of these on disk.",
            "held_back": "Of these, messages that their connection may not read now.",
        },
    ),
    *own(
        "queues",
        COUNTER,
        {
            "rejected": "Messages refused or dropped for a full queue.",
            "rejected_for_memory": "Messages refused or dropped because memory was full.",
            "dropped_oldest": "Acknowledged messages dropped for newer ones.",
            "dropped_newest": "Acknowledged messages dropped because a queue was full.",
            "dropped_for_others": "Acknowledged messages that long queues gave up for others.",
        },
    ),
    *own("connections", GAUGE, {"open": "Connections of all listeners."}),
    *own(
        "connections",
        COUNTER,
        {
            "over_maximum": "Connections beyond the maximum of a listener.",
            "given_up": "Connections without an accepted CONNECT that were closed for new ones.",
            "over_rate": "Connections beyond the rate of a listener.",
            "over_capacity": "Connections beyond what the process can hold.",
            "connect_timeouts": "Connections without a CONNECT in time.",
            "aborted": "Connections whose peer neither read nor closed.",
            "tls_refused": "TLS handshakes that failed.",
            "websocket_refused": "WebSocket requests that failed.",
            "origins_refused": "WebSocket requests of web pages that may not connect.",
            "websocket_errors": "WebSockets closed for what the peer sent.",
        },
    ),
    *own(
        "shares/refused",
        COUNTER,
        {
            "sessions": "CONNECTs refused because a holder has its share of sessions.",
            "subscriptions": "Topic filters refused because a holder has its share.",
            "expressions": "Expressions refused because a holder has its share.",
            "channels": "Channels that were none because a holder has its share.",
            "delayed": "Messages not put off because a holder has its share.",
            "delayed_bytes": "Messages not put off because a holder has its share of the memory.",
            "retained": "Messages not retained because a holder has its share.",
            "retained_bytes": "Messages not retained because a holder has its share of the memory.",
            "will_bytes": "CONNECTs refused because a holder has its share of memory for wills.",
        },
    ),
    *own("retained", COUNTER, {"rejected": "Retained messages beyond the bound."}),
    *own(
        "memory",
        GAUGE,
        {
            "limit": "Bytes that clients may make the gateway hold.",
            "bytes": "Bytes that it holds for them.",
            "buffers": "Bytes of these in buffers of connections.",
            "idle": "Bytes of these for connections and sessions by themselves.",
        },
    ),
    *own("memory", COUNTER, {"closed": "Connections closed for want of memory."}),
    *own("turns", GAUGE, {"longest_ms": "Seconds of the last minute's longest turn."}),
    *own("delays", GAUGE, {"waiting": "Messages that wait for the moment of their delay."}),
    *own(
        "conflated",
        GAUGE,
        {
            "topics": "Topics of which conflated subscriptions were sent a message lately.",
            "bytes": "Bytes of these, and of the messages that are held of them.",
        },
    ),
    *own(
        "conflated",
        COUNTER,
        {
            "superseded": "Messages replaced by a newer one of their topic.",
            "not_held": "Messages sent at once because so many topics were known.",
        },
    ),
    *own("delivery", GAUGE, {"held_sessions": "Sessions for which messages are held."}),
    *own("delivery", COUNTER, {"not_held": "Times that too many sessions held messages."}),
    *own(
        "delivery/<class>",
        COUNTER,
        {
            "flushes": "Writes to clients of the class.",
            "packets": "Packets of these.",
            "bytes": "Bytes of these.",
        },
    ),
    *own(
        "delivery/<class>",
        GAUGE,
        {
            "packets_per_flush": "Mean packets of a write.",
            "bytes_per_flush": "Mean bytes of a write.",
            "delay_ms_p50": "Seconds that half of the messages held last were held.",
            "delay_ms_p99": "Seconds that 99 % of them were held at most.",
        },
    ),
    *own("replays", GAUGE, {"waiting": "Subscriptions that still await retained messages."}),
    *own(
        "replays",
        COUNTER,
        {
            "deferred": "Subscriptions whose retained messages took several turns.",
        },
    ),
    *own(
        "routes",
        COUNTER,
        {
            "hits": "Messages whose receivers were known from an earlier one.",
            "misses": "Messages whose receivers had to be found.",
            "decisions": "Times that access rules were evaluated for a topic.",
        },
    ),
    *own(
        "routes",
        GAUGE,
        {
            "hit_rate": "Percent of hits among hits and misses.",
            "topics": "Topics whose receivers are known.",
            "bytes": "Bytes that the known receivers occupy.",
        },
    ),
)

ALIASES = (
    *own(
        "aliases/in",
        COUNTER,
        {
            "hits": "PUBLISH packets from clients with an alias and no topic.",
            "mappings": "PUBLISH packets from clients that set an alias.",
            "evictions": "Aliases that clients assigned to another topic.",
        },
    ),
    *own(
        "aliases/in",
        GAUGE,
        {
            "hit_rate": "Percent of hits among hits and mappings.",
            "bytes_saved": "Bytes of topic names that did not travel, less the aliases.",
            "bytes_held": "Bytes of topic names that aliases stand for.",
        },
    ),
    *own(
        "aliases/out",
        COUNTER,
        {
            "hits": "PUBLISH packets to clients with an alias and no topic.",
            "misses": "PUBLISH packets to clients with a topic name.",
            "mappings": "PUBLISH packets to clients that set an alias.",
            "evictions": "Aliases removed from a topic for another one.",
            "refused_soft": "Topics without an alias for want of memory.",
            "refused_hard": "Connections that gave up all aliases for want of memory.",
        },
    ),
    *own(
        "aliases/out",
        GAUGE,
        {
            "hit_rate": "Percent of hits among hits and misses.",
            "bytes_saved": "Bytes of topic names that did not travel, less the aliases.",
            "bytes_held": "Bytes of topic names and the objects around them.",
        },
    ),
)

WHERE = (
    *own(
        "where",
        COUNTER,
        {
            "evaluated": "Evaluations of subscription filters.",
            "passed": "Evaluations that were TRUE.",
            "filtered": "Evaluations that were not TRUE.",
            "null": "Evaluations that were NULL.",
            "slow": "Measured evaluations of more than a millisecond.",
            "over_budget": "Evaluations, of rules, too, that were NULL for what they would cost.",
        },
    ),
    *own(
        "where",
        GAUGE,
        {
            "expressions": "Distinct expressions of clients.",
            "promoted": "Expressions in use with a function of their own.",
            "slowest_microseconds": "Mean seconds of the slowest expression in use.",
        },
    ),
)

CHANNELS = (
    Figure("tidegate/channels", GAUGE, "Channels."),
    Figure(
        "tidegate/channels_refused",
        COUNTER,
        "Shared subscriptions that could be no channel because there were too many.",
    ),
    Figure(
        "tidegate/channels/<channel>/state",
        GAUGE,
        "1 for the state of the channel.",
        "tidegate_channel_state",
        ("open", "paused"),
    ),
    *own(
        "channels/<channel>",
        GAUGE,
        {
            "consumers": "Consumers, connected or not.",
            "depth": "Messages that wait for a consumer.",
            "depth_high": "Of these, with high priority.",
            "depth_normal": "Of these, with normal priority.",
            "depth_low": "Of these, with low priority.",
            "bytes": "Bytes of messages that wait.",
            "put_aside": "Waiting messages that are paused, or that no consumer may read.",
            "in_flight": "Messages that consumers have and did not acknowledge.",
            "attempts": "Most deliveries of one of these, or of a returned one.",
            "oldest_seconds": "Age of the oldest message in memory.",
            "latency_ms_p50": "Seconds until half of the last messages were acknowledged.",
            "latency_ms_p99": "Seconds until 99 % of them were acknowledged.",
        },
    ),
    *own(
        "channels/<channel>",
        COUNTER,
        {
            "received": "Messages queued.",
            "delivered": "Deliveries to consumers.",
            "acknowledged": "Messages that consumers acknowledged.",
            "unacknowledged": "Messages sent at QoS 0, which nobody acknowledges.",
            "replaced": "Messages that a newer one of their key has replaced.",
            "requeued": "Messages that consumers returned.",
            "timed_out": "Messages not acknowledged in time.",
            "dead_lettered": "Messages published to the dead letter topic.",
            "dropped": "Messages dropped: channel full, last attempt, or emptied.",
            "expired": "Messages that expired while they waited.",
            "filtered": "Messages that no consumer's filter let through.",
            "bad_priority": "Messages whose priority is no level.",
            "outside_size": "Messages smaller or larger than the channel takes.",
            "too_large": "Messages above the Maximum Packet Size of every connected consumer.",
        },
    ),
)

CLIENT_FIGURES = (*CLIENTS, *CHANNELS, *ALIASES, *WHERE)

OWN_FIGURES = (
    *UPLINK_FIGURES,
    *CLOCK,
    *HISTORY,
    *STORAGE,
    *CLIENT_FIGURES,
    *METRICS,
    *QUERIES,
    *SYS,
    *TOPICS,
    *LOG,
    *BRIDGE,  # last: any part may be the kind of a bridge
)
