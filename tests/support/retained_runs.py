"""Retained messages that are sent in runs, and those that are kept."""

from collections.abc import Iterable

from gateway.mqtt.packets import Publish
from gateway.mqtt.reason_codes import ReasonCode
from tests.support.broker_harness import Harness

NOBODY = ReasonCode.NO_MATCHING_SUBSCRIBERS


def retained(topics: Iterable[str], qos: int = 1, payload: bytes = b"x") -> list[Publish]:
    return [
        Publish(topic, payload, qos, True, packet_id=number * qos)
        for number, topic in enumerate(topics, 1)
    ]


def kept(harness: Harness) -> dict[str, bytes]:
    return {each.topic: each.payload for each in harness.broker.retained.match("#", harness.now)}
