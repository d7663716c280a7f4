"""A record by a typed decoder: quick for what is right, no answer for what may not be.

Whatever it takes, pipeline.record would take too, with the same values; it leaves lines to that
module which are wrong, have unknown fields, or need a second look.
"""

from typing import Annotated

import msgspec
from msgspec.structs import astuple

_GatewayId = Annotated[str, msgspec.Meta(pattern=r"\A[A-Za-z0-9][A-Za-z0-9_-]{0,63}\Z")]
_Epoch = Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-fA-F]{10}\Z")]
_Stream = Annotated[str, msgspec.Meta(pattern=r"\A[A-Za-z0-9_-]{1,16}\Z")]
_Uint32 = Annotated[int, msgspec.Meta(ge=0, le=2**32 - 1)]


class _Property(msgspec.Struct, array_like=True, forbid_unknown_fields=True, gc=False):
    name: str
    value: str


class _Record(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, gc=False):
    """The fields in the order of columns.RECORD."""

    gateway_id: _GatewayId
    epoch: _Epoch
    stream: _Stream
    seq: Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)]
    time: Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
    received: Annotated[int, msgspec.Meta(ge=0, le=2**53 - 1)] | None = None
    topic: Annotated[str, msgspec.Meta(min_length=1)]
    payload: bytes
    qos: Annotated[int, msgspec.Meta(ge=0, le=2)] | None = None
    retain: bool | None = None
    resent: bool | None = None
    content_type: str | None = None
    properties: list[_Property] | None = None
    clientid: str | None = None
    username: str | None = None
    response_topic: str | None = None
    correlation_data: bytes | None = None
    message_expiry: _Uint32 | None = None
    payload_format: Annotated[int, msgspec.Meta(ge=0, le=1)] | None = None
    payload_is_json: bool | None = None


_decode = msgspec.json.Decoder(_Record).decode
_PROPERTIES = _Record.__struct_fields__.index("properties")


def read_fast(line: bytes) -> tuple[object, ...] | None:
    """Return a record's fields in the order of columns.RECORD, None where it may be none."""
    if (b"\\u" in line or not line.isascii()) and _needs_a_second_look(line):
        return None
    try:
        record = _decode(line)
    except msgspec.MsgspecError:
        return None
    values = astuple(record)
    if not record.properties:
        return values
    properties = [{"name": each.name, "value": each.value} for each in record.properties]
    return (*values[:_PROPERTIES], properties, *values[_PROPERTIES + 1 :])


def _needs_a_second_look(line: bytes) -> bool:
    """Say whether a line may have half a surrogate, or is not UTF-8."""
    if b"\\ud" in line or b"\\uD" in line:
        return True
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        return True
    return False
