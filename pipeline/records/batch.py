"""A gateway's batch: the records of the messages in one compressed payload.

docs/understand/fleet-interface.md, "Batches", has its form.
"""

import zlib
from base64 import b64encode

from pipeline.records.strict_json import NotJsonError, parse

VERSION = 1
"""The first byte of the batches that are read here."""

BATCH_BYTES_MAX = 64 * 1024 * 1024
"""Bytes of one batch when it is unpacked; more is a bomb or a mistake."""


LEFT_OUT: dict[str, object] = {
    "qos": 1,
    "retain": False,
    "resent": False,
    "content_type": None,
    "properties": [],
}
"""What a record has where the line says nothing."""


class BatchError(ValueError):
    """A payload is not a batch, or was cut; the message says why."""


def read_batch(payload: bytes, gateway_id: str, received: int) -> list[dict[str, object]]:
    """Return a record of docs/understand/schemas/landing-record.schema.json for each message.

    `gateway_id` is the level of the topic before `batch`, `received` the time in ms since 1970.
    The fields of a record are not checked here. Raises BatchError.
    """
    lines = _unpack(payload).split(b"\n")
    if lines.pop():
        raise BatchError("the last line has no end")
    return [_record(line, gateway_id, received) for line in lines]


def _unpack(payload: bytes) -> bytes:
    if payload[:1] != bytes([VERSION]):
        raise BatchError(f"version {payload[0] if payload else 'missing'}, not {VERSION}")
    unpacker = zlib.decompressobj()
    try:
        content = unpacker.decompress(payload[1:], BATCH_BYTES_MAX)
    except zlib.error as error:
        raise BatchError(f"not a zlib stream: {error}") from None
    if unpacker.unconsumed_tail:
        raise BatchError(f"more than {BATCH_BYTES_MAX} bytes")
    if not unpacker.eof:
        raise BatchError("the zlib stream was cut")
    if unpacker.unused_data:
        raise BatchError("something follows the zlib stream")
    return content


def _record(line: bytes, gateway_id: str, received: int) -> dict[str, object]:
    try:
        message = parse(line)
    except NotJsonError as error:
        raise BatchError(str(error)) from None
    if not isinstance(message, dict):
        raise BatchError("a line is not an object")
    text = message.pop("text", None)
    if isinstance(text, str):
        message["payload"] = b64encode(text.encode()).decode("ascii")
    return {**LEFT_OUT, **message, "gateway_id": gateway_id, "received": received}
