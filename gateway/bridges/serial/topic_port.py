"""Two topics of the gateway's own broker as the line to a node that has Wi-Fi."""

import asyncio

from gateway.bridges.supervision.host import Host
from gateway.mqtt.message import Message
from gateway.mqtt.reason_codes import ReasonCode

SCHEME = "topic://"

WAITING_MAX = 65_536
"""Bytes that wait to be read; a message for which there is no room is refused."""


class TopicPort:
    """Hears what nodes publish to `<topic>/up`, and publishes to `<topic>/down`, both at QoS 0."""

    def __init__(self, url: str, host: Host) -> None:
        topic = url.removeprefix(SCHEME)
        self._down = f"{topic}/down"
        self._host = host
        self._waiting = bytearray()
        self._arrived = asyncio.Event()
        subscribe = host.services.subscribe
        self._end = subscribe(host.publisher.client_id, f"{topic}/up", self._receive)

    async def read(self) -> bytes:
        """Return the next bytes, at least one; this line is never lost."""
        await self._arrived.wait()
        self._arrived.clear()
        data = bytes(self._waiting)
        self._waiting.clear()
        return data

    def write(self, data: bytes) -> bool:
        """Publish; return False when the broker does not take it."""
        return self._host.send(self._down, data, qos=0) < 0x80

    def close(self) -> None:
        """Hear nothing any more."""
        self._end()

    def _receive(self, message: Message) -> ReasonCode:
        payload = bytes(message.payload)
        if len(self._waiting) + len(payload) > WAITING_MAX:
            return ReasonCode.QUOTA_EXCEEDED
        if payload:
            self._waiting += payload
            self._arrived.set()
        return ReasonCode.SUCCESS
