"""The names of what a gateway tells, below `$SYS/broker/` (docs/sys-topics.md)."""

UPTIME = "uptime"
VERSION = "version"
RECEIVED = "publish/messages/received"
SENT = "publish/messages/sent"
DROPPED = "publish/messages/dropped"
CLIENTS = "clients/connected"
GATEWAY_ID = "tidegate/gateway/id"
OUTBOX_ROWS = "tidegate/outbox/rows"
OUTBOX_BYTES = "tidegate/outbox/bytes"
OUTBOX_OLDEST = "tidegate/outbox/oldest_seconds"
OUTBOX_REJECTED = "tidegate/outbox/rejected"
OUTBOX_SURVIVES = "tidegate/outbox/survives_seconds"
OUTBOX_DRAINS = "tidegate/outbox/drains_seconds"
UPLINK_STATE = "tidegate/uplink/state"
UPLINK_DESTINATION = "tidegate/uplink/destination"
UPLINK_ERROR = "tidegate/uplink/error"
UPLINK_ACKNOWLEDGED = "tidegate/uplink/acknowledged"
UPLINK_RESENT = "tidegate/uplink/resent"
UPLINK_REFUSED = "tidegate/uplink/refused"
UPLINK_INFLIGHT = "tidegate/uplink/inflight"
UPLINK_RECONNECTS = "tidegate/uplink/reconnects"
UPLINK_PACE = "tidegate/uplink/backlog_messages_per_second"
UPLINK_BUDGET = "tidegate/uplink/budget"
UPLINK_BUDGET_USED = "tidegate/uplink/budget_used"
RULES_ACCEPTED = "tidegate/rules/accepted"
RULES_FILTERED = "tidegate/rules/filtered"
RULES_SAVED = "tidegate/rules/bytes_saved"
BRIDGE_READINGS = "tidegate/bridges/readings"
SERIAL_DUPLICATES = "tidegate/serial/duplicates"
SERIAL_REJECTED = "tidegate/serial/rejected"
SERIAL_CRC_ERRORS = "tidegate/serial/crc_errors"
STORAGE_PENDING = "tidegate/storage/pending_rows"
STORAGE_WRITTEN_PER_DAY = "tidegate/storage/written_per_day"
STORAGE_CARD_DAYS = "tidegate/storage/card_days"
STORAGE_FAILURES = "tidegate/storage/failures"

COUNTS = frozenset({
    RECEIVED, SENT, DROPPED, CLIENTS,
    OUTBOX_ROWS, OUTBOX_BYTES, OUTBOX_OLDEST, OUTBOX_REJECTED,
    OUTBOX_SURVIVES, OUTBOX_DRAINS,
    UPLINK_ACKNOWLEDGED, UPLINK_RESENT, UPLINK_REFUSED, UPLINK_INFLIGHT, UPLINK_RECONNECTS,
    UPLINK_PACE, UPLINK_BUDGET, UPLINK_BUDGET_USED,
    RULES_ACCEPTED, RULES_FILTERED, RULES_SAVED,
    BRIDGE_READINGS, SERIAL_DUPLICATES, SERIAL_REJECTED, SERIAL_CRC_ERRORS,
    STORAGE_PENDING, STORAGE_FAILURES, STORAGE_WRITTEN_PER_DAY, STORAGE_CARD_DAYS,
})  # fmt: skip
"""those that are a number"""
WORDS = frozenset({VERSION, GATEWAY_ID, UPLINK_STATE, UPLINK_DESTINATION, UPLINK_ERROR})
"""those that are a text"""
