"""Prometheus metadata of the figures that Mosquitto has too, and of Tidegate's own."""

from gateway.telemetry.bridge_metrics import BRIDGE
from gateway.telemetry.client_metrics import CLIENT_FIGURES
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
    Figure("publish/messages/dropped", COUNTER, "Messages given up for a receiver."),
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


COUNTER, GAUGE = Kind.COUNTER, Kind.GAUGE

CLOCK = (
    *own(
        "clock",
        GAUGE,
        {
            "synchronized": "1 while something keeps the wall clock right.",
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
            "dropped": "Clock records given up because too many waited.",
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
            "written_bytes": "Bytes sent to storage since the start, less those taken back.",
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
        "unanswered": "Refused queries whose PUBACK alone says so, because they were so many.",
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

LOG = own("log", COUNTER, {"dropped": "Log lines given up because standard error took none."})

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
