"""The table of Tidegate's own figures, with what each is to a scraper."""

from gateway.telemetry.figure import Figure, Kind

COUNTER, GAUGE = Kind.COUNTER, Kind.GAUGE

LINK = ("off", "connecting", "connected", "disconnected", "waiting", "paused")
PORT = ("open", "waiting")


def _own(part: str, kind: Kind, figures: dict[str, str]) -> tuple[Figure, ...]:
    """Return the figures of one part and kind, given as name and help."""
    return tuple(Figure(f"tidegate/{part}/{name}", kind, text) for name, text in figures.items())


UPLINK = (
    Figure("tidegate/uplink/state", GAUGE, "1 for the state that the link is in.", words=LINK),
    *_own(
        "uplink",
        COUNTER,
        {
            "sent": "Messages sent to the fleet.",
            "resent": "Messages sent before, or from the backlog.",
            "acknowledged": "Messages that the fleet has taken.",
            "refused": "PUBACKs of the fleet that refused.",
            "refused_dropped": "Refused messages that are not kept any more.",
            "slowdowns": "Times that the pace of the backlog was cut.",
            "batches": "PUBLISH packets with a batch of messages.",
            "reconnects": "Connections to the fleet after the first.",
        },
    ),
    *_own(
        "uplink",
        GAUGE,
        {
            "inflight": "Messages sent and not yet acknowledged.",
            "backlog_messages_per_second": "Messages a second that the backlog may send.",
            "backlog_bytes_per_second": "Bytes a second that the backlog may send.",
            "puback_ms": "Milliseconds that the last PUBACK took.",
            "budget": "Bytes that the uplink may use a day.",
            "budget_used": "Bytes that the uplink has used today.",
        },
    ),
)

OUTBOX = (
    *_own(
        "outbox",
        GAUGE,
        {
            "rows": "Messages that wait for the fleet.",
            "bytes": "Bytes of the database that wait for the fleet.",
            "oldest_seconds": "Seconds that the oldest message has waited.",
            "survives_seconds": "Seconds of an outage until the outbox or the disk is full.",
            "drains_seconds": "Seconds that a full outbox takes to go up.",
            "stream/<stream>/rows": "Messages of a stream that wait for the fleet.",
            "stream/<stream>/bytes": "Bytes of a stream that wait for the fleet.",
        },
    ),
    *_own(
        "outbox",
        COUNTER,
        {
            "rejected": "Messages refused because the outbox was full.",
            "evicted/<policy>": "Messages acknowledged and given up, by policy.",
            "expired": "Messages that expired in the outbox.",
            "latest_overflow": "Topics of latest streams whose newest row was forgotten.",
        },
    ),
)

LEDGER = (
    *_own("ledger", GAUGE, {"ranges": "Ranges of ended numbers that are kept."}),
    *_own(
        "ledger",
        COUNTER,
        {
            "delivered": "Numbers that ended as delivered.",
            "filtered": "Numbers that ended as filtered.",
            "expired": "Numbers that ended as expired.",
            "evicted": "Numbers that ended as evicted.",
            "rejected": "Numbers that ended as rejected.",
            "lost": "Numbers that ended as lost.",
            "acknowledged": "Ledger entries that the fleet has taken.",
            "refused": "Refusals of ledger entries.",
            "coarsened": "Ranges that became part of a neighbour.",
            "starts_forgotten": "Starts of which the fleet had not heard and nothing is left.",
        },
    ),
)

CLOCK = (
    *_own(
        "clock",
        GAUGE,
        {
            "synchronized": "1 while something keeps the wall clock right.",
            "uncertainty_ms": "Milliseconds by which the wall clock may be off, if known.",
            "offset_ms": "Milliseconds by which it was off before it was set the last time.",
        },
    ),
    *_own(
        "clock",
        COUNTER,
        {
            "steps": "Times that the wall clock was set.",
            "acknowledged": "Clock records that the fleet has taken.",
            "refused": "Refusals of clock records.",
            "dropped": "Clock records given up because too many waited.",
        },
    ),
)

RULES = (
    *_own(
        "rules",
        COUNTER,
        {
            "matched": "Messages on the topic of a rule.",
            "taken": "Messages that entered the outbox.",
            "filtered": "Messages that the rules stopped.",
            "bytes_saved": "Bytes of messages that no rule of their stream took.",
            "<rule>/evaluated": "Messages that reached the rule.",
            "<rule>/passed": "Messages for which the rule was TRUE.",
            "<rule>/filtered": "Messages for which the rule was not TRUE.",
            "<rule>/null": "Messages for which the rule was NULL.",
            "<rule>/bytes_saved": "Bytes that this rule was the last not to take.",
            "<rule>/state_overflow": "Messages of which the rule could remember nothing.",
        },
    ),
    *_own(
        "rules",
        GAUGE,
        {
            "<rule>/microseconds": "Mean microseconds of an evaluation.",
            "<rule>/epoch": "Higher whenever the memory of the rule started empty.",
            "<rule>/topics": "Topics of which the rule remembers something.",
        },
    ),
)

SERIAL = (
    Figure("tidegate/serial/<port>/state", GAUGE, "1 for the state of the port.", words=PORT),
    *_own("serial", GAUGE, {"<port>/dropped": "Samples that the nodes say they gave up."}),
    *_own(
        "serial",
        COUNTER,
        {
            "frames": "Frames read.",
            "lines": "JSON lines read.",
            "readings": "Readings published.",
            "duplicates": "Frames that a node repeated.",
            "rejected": "Readings refused for ever.",
            "lost": "Readings of JSON lines that could not be taken.",
            "acknowledgements_dropped": "Answers to nodes that could not leave.",
            "crc_errors": "Frames that failed their check.",
            "garbage_bytes": "Bytes that belonged to no frame or line.",
        },
    ),
)

HISTORY = (
    *_own(
        "recall",
        COUNTER,
        {
            "requests": "Recalls that began.",
            "refused": "Recalls that were refused.",
            "messages": "Messages that recalls put into the outbox.",
        },
    ),
    *_own("recall", GAUGE, {"running": "1 while a recall is under way."}),
    *_own(
        "history",
        COUNTER,
        {
            "recorded": "Messages recorded in the history.",
            "skipped": "Messages that the history could not record.",
        },
    ),
)

STORAGE = (
    *_own(
        "storage",
        COUNTER,
        {
            "commits": "Transactions on disk.",
            "rows": "Rows on disk.",
            "failures": "Commits that failed.",
            "elided_rows": "Rows that need not be written any more.",
            "classes_forgotten": "Times that the classes of topics were looked up anew.",
            "device_flushes": "Flushes of the cache of the device.",
            "unreadable": "Rows that a start could not read.",
            "rejected": "Messages that the disk could not take.",
            "salvaged": "Rows that were salvaged from a damaged database.",
            "lost": "Rows of a damaged database that could not be read.",
        },
    ),
    *_own(
        "storage",
        GAUGE,
        {
            "commit_delay": "Milliseconds by which a commit may be put off.",
            "commit_ms_mean": "Mean milliseconds of a commit.",
            "commit_ms_longest": "Milliseconds of the longest commit.",
            "commit_rows_mean": "Mean rows of a commit.",
            "commit_rows_most": "Most rows of a commit.",
            "pending_rows": "Rows gathered and not yet on disk.",
            "written_bytes": "Bytes sent to storage since the start, less those taken back.",
            "written_per_day": "Bytes a day at the present rate of writing.",
            "write_budget": "Bytes that may be written in a day, 0 for any.",
            "stretch_percent": "Percent of its window that a commit waits.",
            "card_days": "Days that the device lasts at the present rate.",
        },
    ),
)

CLIENTS = (
    *_own(
        "clients",
        COUNTER,
        {
            "refused": "CONNECTs refused.",
            "protocol_errors": "Connections closed for what the client sent.",
            "not_authorized": "PUBLISHes to topics that are not writable.",
            "errors": "Connections closed for a mistake of the gateway.",
        },
    ),
    *_own(
        "refused",
        COUNTER,
        {
            "topic_names": "Messages and wills whose topic was too long or deep.",
            "topic_filters": "Topic filters that were too long or deep.",
            "subscriptions": "Topic filters beyond what may be subscribed to.",
            "payload_formats": "Payloads said to be UTF-8 that are not.",
            "incoming": "QoS 2 messages beyond what a session may hold.",
            "wills": "CONNECTs with a will while the queues were full.",
        },
    ),
    *_own(
        "sessions", COUNTER, {"rejected": "CONNECTs beyond the persistent sessions that may be."}
    ),
    *_own(
        "queues",
        GAUGE,
        {
            "messages": "Deliveries that wait in the queues of sessions.",
            "bytes": "Bytes that wait in the queues of sessions.",
            "memory_bytes": "Bytes of these in memory.",
            "disk_bytes": "Bytes of these on disk.",
        },
    ),
    *_own(
        "queues",
        COUNTER,
        {
            "rejected": "Messages refused or dropped for a full queue.",
            "rejected_for_memory": "Messages refused or dropped because memory was full.",
            "dropped_oldest": "Acknowledged messages given up for newer ones.",
            "dropped_newest": "Acknowledged messages given up because a queue was full.",
        },
    ),
    *_own("connections", GAUGE, {"open": "Connections of all listeners."}),
    *_own(
        "connections",
        COUNTER,
        {
            "over_maximum": "Connections beyond the maximum of a listener.",
            "over_rate": "Connections beyond the rate of a listener.",
            "no_room": "Connections beyond what the process can hold.",
            "connect_timeouts": "Connections without a CONNECT in time.",
            "aborted": "Connections whose peer neither read nor closed.",
            "tls_refused": "TLS handshakes that failed.",
            "websocket_refused": "WebSocket requests that failed.",
            "websocket_errors": "WebSockets closed for what the peer sent.",
        },
    ),
    *_own("retained", COUNTER, {"rejected": "Retained messages beyond the bound."}),
    *_own(
        "routes",
        COUNTER,
        {
            "hits": "Messages whose receivers were known from an earlier one.",
            "misses": "Messages whose receivers had to be found.",
        },
    ),
    *_own(
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
    *_own(
        "aliases/in",
        COUNTER,
        {
            "hits": "PUBLISH packets from clients with an alias alone.",
            "mappings": "PUBLISH packets from clients that set an alias.",
            "evictions": "Aliases that clients took from another topic.",
        },
    ),
    *_own(
        "aliases/in",
        GAUGE,
        {
            "hit_rate": "Percent of hits among hits and mappings.",
            "bytes_saved": "Bytes of topic names that did not travel, less the aliases.",
            "bytes_held": "Bytes of topic names that aliases stand for.",
        },
    ),
    *_own(
        "aliases/out",
        COUNTER,
        {
            "hits": "PUBLISH packets to clients with an alias alone.",
            "misses": "PUBLISH packets to clients with a topic name.",
            "mappings": "PUBLISH packets to clients that set an alias.",
            "evictions": "Aliases taken from a topic.",
            "refused_soft": "Topics without an alias for want of memory.",
            "refused_hard": "Connections that gave up all aliases for want of memory.",
        },
    ),
    *_own(
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
    *_own(
        "where",
        COUNTER,
        {
            "evaluated": "Evaluations of subscription filters.",
            "passed": "Evaluations that were TRUE.",
            "filtered": "Evaluations that were not TRUE.",
            "null": "Evaluations that were NULL.",
            "slow": "Measured evaluations of more than a millisecond.",
        },
    ),
    *_own(
        "where",
        GAUGE,
        {
            "expressions": "Distinct expressions of clients.",
            "promoted": "Expressions in use with a function of their own.",
            "slowest_microseconds": "Mean microseconds of the slowest expression in use.",
        },
    ),
)

METRICS = _own(
    "metrics",
    COUNTER,
    {
        "requests": "Requests answered here.",
        "refused": "Connections here beyond the maximum, or without a whole request in time.",
    },
)

OWN_FIGURES = (
    *UPLINK,
    *OUTBOX,
    *LEDGER,
    *CLOCK,
    *RULES,
    *SERIAL,
    *HISTORY,
    *STORAGE,
    *CLIENTS,
    *ALIASES,
    *WHERE,
    *METRICS,
)
