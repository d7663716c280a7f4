"""A message as the fleet sees it: topic and properties around an untouched payload."""

from gateway.storage.outbox_row import OutboxRow
from gateway.uplink.settings import UplinkSettings


def fleet_topic(row: OutboxRow, settings: UplinkSettings) -> str:
    """Return `<prefix>/<gateway_id>/data/<local topic>`."""
    return settings.topic(f"data/{row.topic}")


def user_properties(
    row: OutboxRow, settings: UplinkSettings, *, resent: bool
) -> list[tuple[str, str]]:
    """Return the [name, value] pairs that go up: ours first, then the publisher's unchanged.

    Ours are `seq`, `time`, `resent`, `was`, and with identity `clientid` and `username`, each
    only where it says something (docs/fleet.md).
    """
    pairs = [("seq", f"{row.epoch}.{row.stream}.{row.seq}"), ("time", str(row.time))]
    if resent:
        pairs.append(("resent", "1"))
    if row.qos != 1 or row.retain:
        pairs.append(("was", f"{row.qos}{row.retain:d}"))
    if settings.identity and row.client_id is not None:
        pairs.append(("clientid", row.client_id))
    if settings.identity and row.username is not None:
        pairs.append(("username", row.username))
    pairs.extend(row.user_properties)
    return pairs


def remaining_expiry(row: OutboxRow, now: int) -> int | None:
    """Return the seconds of message expiry that are left at `now` (ms), None without expiry.

    What has waited is subtracted [MQTT-3.3.2-6]. One second at least is left: the outbox ends
    what has expired, and 0 would not do, since there are brokers that take it for "never".
    """
    if row.message_expiry is None:
        return None
    waited = max(0, now - row.stepped - row.time) // 1000
    return max(1, row.message_expiry - waited)
