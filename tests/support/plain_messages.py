"""Retained messages that nobody has asked more of than their bytes."""

from gateway.mqtt.plain_message import Origin, PlainMessage


def plain(topic: str, payload: bytes, now: float = 0.0) -> PlainMessage:
    return PlainMessage(topic, payload, Origin("c", "u", 1, 7, now, None))
