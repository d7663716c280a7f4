"""The health of the gateway as one line of text."""

from gateway.storage.engine.writer import Writer
from gateway.telemetry.heartbeat import Heartbeat


def trouble(writer: Writer, heartbeat: Heartbeat) -> str:
    """Return why the gateway is unhealthy, an empty text if it is healthy.

    A gateway whose loop stands still gives no answer at all: who asks needs a time-out.
    """
    reason = refusing(writer)
    if reason:
        return reason
    if heartbeat.late:
        return f"the event loop stood still for {heartbeat.late:.1f} s within the last minute"
    return ""


def refusing(writer: Writer) -> str:
    """Return why publishers are refused, an empty text if they are not."""
    if writer.refuses:
        return f"{writer.refuses}: publishers are refused"
    if writer.attempts.failing:
        return "the database takes no more: publishers are refused"
    if writer.attempts.disk_full:
        return "the disk is full: publishers are refused"
    if writer.full:
        return f"{writer.pending_rows} rows wait for the disk: publishers are refused"
    return ""
