"""The landing record: a message as a line of JSON, the same on every way."""

import json
from base64 import b64encode

from gateway.mqtt.message import NOT_JSON, parse_json
from gateway.settings.uplink import UplinkSettings
from gateway.storage.outbox.row import OutboxRow
from gateway.uplink.envelope import has_more, remaining_expiry

_quote = json.encoder.encode_basestring_ascii
_encode = json.JSONEncoder(separators=(",", ":")).encode


def landing_line(
    row: OutboxRow, settings: UplinkSettings, *, received: int, resent: bool = False
) -> bytes:
    """Return the record of docs/understand/fleet-interface.md.

    `received` is when it lands (ms since 1970). It is one line of ASCII, whichever line ends a
    reader expects. Absent optional fields are omitted; blobs are base64.
    """
    # Decided here, by the gateway's own parser, so that all later readers agree (where-language
    # 6.3).
    is_json = parse_json(row.message.payload) is not NOT_JSON
    properties = _encode(row.message.user_properties) if row.message.user_properties else "[]"
    content_type = "null" if row.message.content_type is None else _quote(row.message.content_type)
    optional = ""
    if settings.identity or has_more(row):
        optional = _optional(row, received, identity=settings.identity)
    return (  # the common fields; a gateway makes thousands a second, so no dictionary here
        f'{{"gateway_id":"{settings.gateway_id}","epoch":"{row.epoch}","stream":"{row.stream}",'
        f'"seq":{row.seq},"time":{row.time},"received":{received},"topic":{_quote(row.message.topic)},'
        f'"payload":"{b64encode(row.message.payload).decode("ascii")}","qos":{row.message.qos},'
        f'"retain":{_boolean(row.message.retain)},"resent":{_boolean(resent)},'
        f'"content_type":{content_type},"properties":{properties}{optional},'
        f'"payload_is_json":{_boolean(is_json)}}}\n'
    ).encode("ascii")


def file_name(epoch: str, stream: str, first: int, last: int, lines: int) -> str:
    """Return `<epoch>.<stream>.<first>-<last>.<lines>.jsonl`, for rising numbers of one stream."""
    return f"{epoch}.{stream}.{first}-{last}.{lines}.jsonl"


def _boolean(value: bool) -> str:
    return "true" if value else "false"


def _optional(row: OutboxRow, received: int, *, identity: bool) -> str:
    """Return the optional fields, as they are written in the line."""
    blob = row.message.correlation_data
    optional = {
        "clientid": row.message.client_id if identity else None,
        "username": row.message.username if identity else None,
        "response_topic": row.message.response_topic,
        "correlation_data": None if blob is None else b64encode(blob).decode("ascii"),
        "message_expiry": remaining_expiry(row, received),
        "payload_format": row.message.payload_format,
    }
    present = {name: value for name, value in optional.items() if value is not None}
    return f",{_encode(present)[1:-1]}" if present else ""
