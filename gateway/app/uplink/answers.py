"""Answers to what clients ask for, published to the Response Topic of the request."""

import json
from collections.abc import Mapping

from gateway.app.parts import Core
from gateway.broker.own_names import CONTROL_CLIENT
from gateway.mqtt.message import Message


def to_json(answer: Mapping[str, object]) -> bytes:
    """Return the payload of an answer."""
    return json.dumps(answer, separators=(",", ":"), ensure_ascii=False).encode()


def publish_answer(
    core: Core, topic: str, answer: Mapping[str, object], correlation_data: bytes | None
) -> None:
    """Publish an answer; `topic` and `correlation_data` are the request's."""
    instant = core.turn.instant
    core.publish(
        Message(
            topic,
            to_json(answer),
            qos=1,
            client_id=CONTROL_CLIENT,
            received_at=instant.wall,
            arrived=instant.monotonic,
            correlation_data=correlation_data,
            content_type="application/json",
        )
    )
