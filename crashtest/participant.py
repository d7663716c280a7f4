"""A client of the crash test, whose session outlives its connections and the gateway's kills."""

import asyncio
from collections.abc import Callable

from crashtest.client import PATIENCE, Client
from gateway.mqtt.packets import MQTT_5, Connect, Packet, PingReq, PingResp, Will
from gateway.mqtt.properties import Properties

FOR_EVER = 0xFFFFFFFF

POLL = 0.005
"""Seconds between two looks at a condition."""


class HangError(Exception):
    """What was to happen did not within PATIENCE seconds; the text names it."""


async def until(condition: Callable[[], bool], what: str) -> None:
    """Return once the condition holds; raise HangError if it takes too long."""
    deadline = asyncio.get_running_loop().time() + PATIENCE
    while not condition():
        if asyncio.get_running_loop().time() > deadline:
            raise HangError(f"not within {PATIENCE:.0f} s: {what}")
        await asyncio.sleep(POLL)


class Participant:
    """Joins the gateway again and again as the same client.

    `findings` gets a sentence when a session that the gateway acknowledged is gone. Without
    `persistent` there is none, and each connection begins anew.
    """

    def __init__(
        self,
        name: str,
        findings: list[str],
        *,
        version: int = MQTT_5,
        persistent: bool = True,
        receive_maximum: int | None = None,
        will: Will | None = None,
    ) -> None:
        self.name = name
        self.findings = findings
        self.client: Client | None = None
        self._version = version
        self._persistent = persistent
        self._receive_maximum = receive_maximum
        self._will = will
        self._acknowledged = False  # the gateway has said that it keeps the session
        self._reading: asyncio.Task[None] | None = None
        self._pings = 0

    async def join(self, port: int) -> None:
        """Connect and go on where the session was; raise OSError if that fails."""
        properties = Properties()
        if self._version == MQTT_5 and self._persistent:
            properties = Properties(
                session_expiry_interval=FOR_EVER, receive_maximum=self._receive_maximum
            )
        packet = Connect(
            self.name,
            self._version,
            clean_start=not self._persistent,
            will=self._will,
            properties=properties,
        )
        client = await Client.connect(port, packet)
        if self._persistent and self._acknowledged and not client.session_present:
            self.findings.append(f"the session of {self.name} is gone")
            self.forget()
        self._acknowledged = True
        self.client = client
        self._pings = 0
        self.resume(client, present=client.session_present)
        self._reading = asyncio.create_task(self._read(client))

    def disconnect(self) -> None:
        """Close the connection without a DISCONNECT; `ended` waits for it."""
        if self.client is not None:
            self.client.close()

    def lose(self) -> None:
        """Lose the connection with everything that is on its way."""
        if self.client is not None:
            self.client.abort()

    async def ended(self) -> None:
        """Wait until all that came on the connection was read."""
        if self._reading is not None:
            await self._reading
            self._reading = None

    async def aclose(self) -> None:
        """Close the connection, if there is one, and wait until it is gone."""
        self.disconnect()
        await self.ended()

    async def barrier(self) -> None:
        """Wait until the gateway has answered everything that was sent before."""
        if self.client is None:
            return
        self._pings += 1
        self.client.send(PingReq())
        await until(lambda: not self._pings or self.client is None, f"PINGRESP to {self.name}")

    def resume(self, client: Client, *, present: bool) -> None:
        """Say what is to be said first on a new connection."""

    def forget(self) -> None:
        """Drop what belonged to a session that the gateway does not know any more."""

    def on_packet(self, client: Client, packet: Packet) -> None:
        """Handle a packet."""

    async def _read(self, client: Client) -> None:
        async for packet in client.packets():
            if isinstance(packet, PingResp):
                self._pings -= 1
            else:
                self.on_packet(client, packet)
        if self.client is client:
            self.client = None
        client.close()
