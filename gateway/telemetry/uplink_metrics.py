"""Prometheus metadata of the figures of rules, outbox, ledger, recalls and the link."""

from gateway.telemetry.figure import Figure, Kind, own

COUNTER, GAUGE = Kind.COUNTER, Kind.GAUGE


def _of_each(figure: Figure) -> Figure:
    """Return the same figure of one of several uplinks."""
    name = figure.name.replace("tidegate/uplink/", "tidegate/uplink/<uplink>/")
    metric = figure.metric.replace("tidegate_uplink_", "tidegate_each_uplink_")
    return figure._replace(name=name, metric_name=metric)


ENDS = (
    ("closed", "closed without a word"),
    ("reset", "by TCP reset"),
    ("refused", "by a reason code"),
    ("too_large", "a packet too large (0x95)"),
    ("too_fast", "too much for the fleet's broker (0x96, 0x97)"),
    ("stopped", "the fleet's broker stops or is busy"),
    ("taken_over", "another client took over (0x8E)"),
    ("malformed", "the fleet's broker sent what is no MQTT"),
    ("unanswered", "an answer did not come in time"),
    ("lost", "the network"),
    ("renewed", "by the gateway, for messages from the fleet"),
)
"""How connections end (`gateway.uplink.errors.End`), but for those that there never were."""

LINK = ("off", "connecting", "connected", "disconnected", "waiting", "paused")

UPLINK = (
    Figure("tidegate/uplink/state", GAUGE, "1 for the state that the link is in.", words=LINK),
    *own(
        "uplink",
        COUNTER,
        {
            "sent": "Messages sent to the fleet.",
            "resent": "Messages of these that were sent before in this run.",
            "acknowledged": "Messages that the fleet acknowledged.",
            "refused": "PUBACKs of the fleet that refused.",
            "refused_dropped": "Rejected messages that were deleted for newer ones.",
            **{f"ended_{end}": f"Connections to the fleet that ended: {how}." for end, how in ENDS},
            "slowdowns": "Times that the pace of the backlog was cut.",
            "batches": "PUBLISH packets with a batch of messages.",
            "reconnects": "Connections to the fleet after the first.",
            "retained_up": "Retained messages that were brought up.",
            "down": "Messages of the fleet that were published here.",
            "down_repeated": "Messages of the fleet that were received again and are known.",
            "down_dropped": "Messages of the fleet that were not published here.",
            "down_deferred": "Messages of the fleet not acknowledged because a queue was full.",
            "down_too_large": "Messages of the fleet that were skipped for their size.",
            "landing_deleted": "Landing files deleted for the bounds of their folder.",
            "landing_put_back": "Messages of landing files returned to the outbox.",
        },
    ),
    *own(
        "uplink",
        GAUGE,
        {
            "inflight": "Messages sent and not yet acknowledged.",
            "backlog_messages_per_second": "Messages a second that the backlog may send.",
            "backlog_bytes_per_second": "Bytes a second that the backlog may send.",
            "puback_ms": "Seconds that the last PUBACK took.",
            "next_attempt_seconds": "Seconds until it connects again, 0 while that is not planned.",
            "landing_bytes": "Bytes of the disk that landing files take.",
            "budget": "Bytes that the uplink may use a day.",
            "budget_used": "Bytes that the uplink has used today.",
        },
    ),
)

REJECTED = (
    *own(
        "uplink",
        GAUGE,
        {
            "rejected": "Rejected messages that are stored.",
            "rejected_bytes": "Bytes of the rejected messages that are stored.",
        },
    ),
    *own(
        "uplink",
        COUNTER,
        {
            "rejected_retried": "Rejected messages returned to the outbox.",
            "rejected_deleted": "Rejected messages deleted on request.",
        },
    ),
)

EACH_UPLINK = (
    *map(_of_each, UPLINK),
    Figure(
        "tidegate/uplink/<uplink>/waiting",
        GAUGE,
        "Messages that wait for one of several uplinks.",
        "tidegate_each_uplink_waiting",
    ),
)

OUTBOX = (
    *own(
        "outbox",
        GAUGE,
        {
            "rows": "Messages that wait for the fleet.",
            "bytes": "Bytes of the database that wait for the fleet.",
            "oldest_seconds": "Seconds that the oldest message has waited.",
            "survives_seconds": "Seconds of an outage until the outbox or the disk is full.",
            "drains_seconds": "Seconds that a full outbox takes to drain.",
            "stream/<stream>/rows": "Messages of a stream that wait for the fleet.",
            "stream/<stream>/bytes": "Bytes of a stream that wait for the fleet.",
        },
    ),
    *own(
        "outbox",
        COUNTER,
        {
            "unwritten": "Messages that the fleet acknowledged before they had to be on disk.",
            "rejected": "Messages refused because the outbox was full.",
            "evicted/<policy>": "Messages acknowledged and dropped, by policy.",
            "expired": "Messages that expired in the outbox.",
            "latest_overflow": "Topics of latest streams whose newest row was forgotten.",
        },
    ),
)

LEDGER = (
    *own("ledger", GAUGE, {"ranges": "Ranges of ended numbers that are stored."}),
    *own(
        "ledger",
        COUNTER,
        {
            "delivered": "Numbers that ended as delivered.",
            "filtered": "Numbers that ended as filtered.",
            "expired": "Numbers that ended as expired.",
            "evicted": "Numbers that ended as evicted.",
            "rejected": "Numbers that ended as rejected.",
            "lost": "Numbers that ended as lost.",
            "acknowledged": "Ledger entries that the fleet acknowledged.",
            "refused": "Refusals of ledger entries.",
            "compacted": "Ranges merged into a neighbour.",
            "starts_forgotten": "Forgotten starts that the fleet does not know.",
        },
    ),
)

RULES = (
    *own(
        "rules",
        COUNTER,
        {
            "matched": "Messages on the topic of a rule.",
            "accepted": "Messages that entered the outbox.",
            "filtered": "Messages that the rules stopped.",
            "bytes_saved": "Bytes of messages that no rule of their stream accepted.",
            "<rule>/evaluated": "Messages that reached the rule.",
            "<rule>/passed": "Messages for which the rule was TRUE.",
            "<rule>/filtered": "Messages for which the rule was not TRUE.",
            "<rule>/null": "Messages for which the rule was NULL.",
            "<rule>/over_budget": "Messages for which the rule was NULL for what it would cost.",
            "<rule>/bytes_saved": "Bytes that this rule was the last not to take.",
            "<rule>/state_overflow": "Messages of which the rule could remember nothing.",
        },
    ),
    *own(
        "rules",
        GAUGE,
        {
            "<rule>/microseconds": "Mean seconds of an evaluation.",
            "<rule>/epoch": "Higher whenever the memory of the rule started empty.",
            "<rule>/topics": "Topics of which the rule remembers something.",
        },
    ),
)

RECALL = (
    *own(
        "recall",
        COUNTER,
        {
            "requests": "Recalls that began.",
            "refused": "Recalls that were refused.",
            "messages": "Messages that recalls put into the outbox.",
        },
    ),
    *own("recall", GAUGE, {"running": "1 while a recall is under way."}),
)

UPLINK_FIGURES = (*UPLINK, *REJECTED, *EACH_UPLINK, *OUTBOX, *LEDGER, *RULES, *RECALL)
