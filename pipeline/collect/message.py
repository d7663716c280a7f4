"""A message at the fleet's broker as what it lands as: records, or a line about a gateway."""

import json
import re
from base64 import b64encode
from dataclasses import dataclass, field
from typing import Any

from paho.mqtt.client import MQTTMessage

from pipeline.records.batch import BatchError, read_batch
from pipeline.records.record import Values, read_fields

OURS = ("seq", "time", "resent", "was", "clientid", "username")
"""The user properties that a gateway puts before the publisher's; the first of each counts."""

NO_HOPS = ("hops", "")
"""What a gateway puts there where the publisher has a property of that name."""

_GATEWAY = re.compile("[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_SEQ = re.compile(r"([0-9A-Fa-f]{10})\.([A-Za-z0-9_-]{1,16})\.([0-9]{1,19})")


@dataclass
class Landed:
    """What one message gives."""

    records: list[Values] = field(default_factory=list)
    """The fields of records, in the order of columns.RECORD."""
    faults: list[bytes] = field(default_factory=list)
    """JSON lines that are no records; the pipeline says why."""
    reports: list[tuple[str, str, bytes]] = field(default_factory=list)
    """Gateway, `ledger` or `clock`, and the line."""


def read_message(message: MQTTMessage, prefix: str, received: int) -> Landed:
    """Return what a message below `prefix` lands as; `received` is the time in ms since 1970.

    Whatever it says, something lands, since it is acknowledged then.
    """
    levels = message.topic.removeprefix(f"{prefix}/").split("/", 2)
    gateway, kind = levels[0], levels[1] if len(levels) > 1 else ""
    payload = bytes(message.payload)
    if _GATEWAY.fullmatch(gateway) is None:
        return Landed(faults=[_line(_unread(gateway, message.topic, payload, received))])
    if kind in ("ledger", "clock"):
        return Landed(reports=[(gateway, kind, payload.replace(b"\n", b" "))])
    if kind == "batch":
        try:
            records = read_batch(payload, gateway, received)
        except BatchError:
            return Landed(faults=[_line(_unread(gateway, message.topic, payload, received))])
        return _checked(records)
    return _checked([_record(message, gateway, levels[-1], payload, received)])


def _checked(records: list[dict[str, Any]]) -> Landed:
    landed = Landed()
    for record in records:
        values, fault = read_fields(record)
        if fault is None:
            landed.records.append(values)
        else:
            landed.faults.append(_line(record))
    return landed


def _record(
    message: MQTTMessage, gateway: str, topic: str, payload: bytes, received: int
) -> dict[str, Any]:
    """Return a data message as a landing record, whose fields nobody has checked yet."""
    raw = message.properties
    pairs: list[tuple[str, str]] = list(getattr(raw, "UserProperty", []))
    ours, theirs = _divided(pairs)
    was = ours.get("was", "10")
    record: dict[str, Any] = {
        "gateway_id": gateway,
        "received": received,
        "topic": topic,
        "payload": b64encode(payload).decode("ascii"),
        "qos": int(was[:1]) if was[:1].isdecimal() else None,
        "retain": was[1:] == "1",
        "resent": ours.get("resent") == "1",
        "content_type": getattr(raw, "ContentType", None),
        "properties": theirs,
        "response_topic": getattr(raw, "ResponseTopic", None),
        "message_expiry": getattr(raw, "MessageExpiryInterval", None),
        "payload_format": getattr(raw, "PayloadFormatIndicator", None),
    }
    record |= {name: ours[name] for name in ("clientid", "username") if ours.get(name)}
    correlation = getattr(raw, "CorrelationData", None)
    if correlation is not None:
        record["correlation_data"] = b64encode(correlation).decode("ascii")
    return record | _numbers(ours)


def _divided(pairs: list[tuple[str, str]]) -> tuple[dict[str, str], list[list[str]]]:
    """Return the gateway's own properties, and the publisher's in their order."""
    ours: dict[str, str] = {}
    theirs = []
    no_hops = False
    for name, value in pairs:
        if name in OURS and name not in ours:
            ours[name] = value
        elif (name, value) == NO_HOPS and not no_hops:
            no_hops = True
        else:
            theirs.append([name, value])
    return ours, theirs


def _numbers(ours: dict[str, str]) -> dict[str, Any]:
    found = _SEQ.fullmatch(ours.get("seq", ""))
    numbers: dict[str, Any] = {}
    if found is not None:
        numbers = {"epoch": found[1], "stream": found[2], "seq": int(found[3])}
    time = ours.get("time", "")
    if re.fullmatch("-?[0-9]{1,19}", time):
        numbers["time"] = int(time)
    return numbers


def _unread(gateway: str, topic: str, payload: bytes, received: int) -> dict[str, Any]:
    body = b64encode(payload).decode("ascii")
    return {"gateway_id": gateway, "topic": topic, "payload": body, "received": received}


def _line(record: dict[str, Any]) -> bytes:
    return json.dumps(record).encode("utf-8")
