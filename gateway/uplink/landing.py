"""The landing record: a message as a line of JSON, the same whichever way it went."""

import json
from base64 import b64encode
from collections.abc import Sequence

from gateway.routing.where.payload import NOT_JSON, decode_payload, parse_json
from gateway.storage.outbox.outbox_row import OutboxRow
from gateway.uplink.envelope import remaining_expiry
from gateway.uplink.settings import UplinkSettings


def landing_record(
    row: OutboxRow, settings: UplinkSettings, *, resent: bool, received: int
) -> dict[str, object]:
    """Return the record of docs/fleet.md; `received` is when it lands (ms since 1970).

    Optional fields are left out where the message has none; blobs are base64.
    """
    record: dict[str, object] = {
        "gateway_id": settings.gateway_id,
        "epoch": row.epoch,
        "stream": row.stream,
        "seq": row.seq,
        "time": row.time,
        "received": received,
        "topic": row.topic,
        "payload": b64encode(row.payload).decode("ascii"),
        "qos": row.qos,
        "retain": row.retain,
        "resent": resent,
        "content_type": row.content_type,
        "properties": [list(pair) for pair in row.user_properties],
    }
    blob = row.correlation_data
    text = decode_payload(row.payload)
    optional = {
        "clientid": row.client_id if settings.identity else None,
        "username": row.username if settings.identity else None,
        "response_topic": row.response_topic,
        "correlation_data": None if blob is None else b64encode(blob).decode("ascii"),
        "message_expiry": remaining_expiry(row, received),
        "payload_format": row.payload_format,
        # Said here, by the gateway's own parser, so that all later readers agree
        # (where-language 6.3).
        "payload_is_json": text is not None and parse_json(text) is not NOT_JSON,
    }
    record.update((name, value) for name, value in optional.items() if value is not None)
    return record


def landing_line(record: dict[str, object]) -> bytes:
    """Return the record as one line of ASCII, whatever line ends a reader believes in."""
    return json.dumps(record, separators=(",", ":")).encode("ascii") + b"\n"


def landing_file_name(rows: Sequence[OutboxRow]) -> str:
    """Return `<epoch>.<stream>.<first>-<last>.<lines>.jsonl` of rows of one stream, rising."""
    first, last = rows[0], rows[-1]
    return f"{first.epoch}.{first.stream}.{first.seq}-{last.seq}.{len(rows)}.jsonl"
