"""The vectors of the `$where` language and the messages in them (where-language, appendix B)."""

import base64
import json
from pathlib import Path
from typing import Any

from gateway.mqtt.message import Message

VECTORS = Path(__file__).parents[2] / "vectors"


def where_vectors(name: str = "where-vectors.jsonl") -> list[dict[str, Any]]:
    with (VECTORS / name).open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def message_of(row: dict[str, Any]) -> Message:
    correlation_data = row.get("correlation_data")
    return Message(
        row["topic"],
        _payload(row),
        row["qos"],
        row["retain"],
        client_id=row.get("clientid"),
        username=row.get("username"),
        received_at=row.get("received_at"),
        content_type=row.get("content_type"),
        response_topic=row.get("response_topic"),
        correlation_data=None if correlation_data is None else correlation_data.encode(),
        message_expiry=row.get("message_expiry"),
        payload_format=row.get("payload_format"),
        user_properties=tuple((key, value) for key, value in row.get("user_properties", [])),
    )


def _payload(row: dict[str, Any]) -> bytes:
    if "payload_b64" in row:
        return base64.b64decode(row["payload_b64"])
    return bytes(row.get("payload", "").encode())
