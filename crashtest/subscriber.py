"""A client with a persistent session that notes which numbers it was sent."""

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from random import Random

from crashtest.client import Client
from crashtest.numbers import Received, note
from crashtest.participant import Participant, until
from gateway.mqtt.packets import (
    MQTT_5,
    Packet,
    PubAck,
    PubComp,
    Publish,
    PubRec,
    PubRel,
    SubAck,
    Subscribe,
    SubscriptionRequest,
)
from gateway.mqtt.reason_codes import FAILURE

SUBSCRIBE_ID = 1

LONGEST_VISIT = 0.15
"""Seconds for which one stays who comes and goes, at most."""


class Subscriber(Participant):
    """Receives everything below `roots` at its QoS; `received` has what came, by sender.

    A QoS 2 message counts once for each packet identifier until its PUBREL, as a client that
    keeps its state through its own crashes would count it [MQTT-4.3.3-10]. With `pause` each
    acknowledgement is held back by so many seconds.
    """

    def __init__(
        self,
        name: str,
        findings: list[str],
        *,
        roots: Sequence[str],
        qos: int,
        version: int = MQTT_5,
        receive_maximum: int | None = None,
    ) -> None:
        super().__init__(name, findings, version=version, receive_maximum=receive_maximum)
        self.roots = roots
        self.qos = qos
        self.pause = 0.0
        self.messages = 0  # in all, those that came again too
        self.received: defaultdict[str, Received] = defaultdict(Received)
        self._begun: set[int] = set()  # packet identifiers of QoS 2 messages before their PUBREL
        self._subscribed = False

    async def subscribed(self) -> None:
        """Wait until the gateway has acknowledged the subscription."""
        await until(lambda: self._subscribed, f"SUBACK to {self.name}")

    async def come_and_go(self, port: int, random: Random, longest_absence: float) -> None:
        """Leave and join again at random times until the gateway is gone."""
        while True:
            await asyncio.sleep(random.uniform(0, LONGEST_VISIT))
            await self.aclose()
            await asyncio.sleep(random.uniform(0, longest_absence))
            try:
                await self.join(port)
            except OSError:
                return

    def resume(self, client: Client, *, present: bool) -> None:
        """Subscribe, unless the session has it already."""
        if not present:
            self._subscribed = False
            requests = [SubscriptionRequest(f"{root}/#", self.qos) for root in self.roots]
            client.send(Subscribe(SUBSCRIBE_ID, requests))

    def forget(self) -> None:
        """Forget the QoS 2 exchanges of a session that is no more."""
        self._begun.clear()

    def on_packet(self, client: Client, packet: Packet) -> None:
        """Note a message and acknowledge it."""
        if isinstance(packet, Publish):
            self._on_message(packet)
            if packet.qos == 1:
                self._answer(client, PubAck(packet.packet_id))
            elif packet.qos == 2:
                self._answer(client, PubRec(packet.packet_id))
        elif isinstance(packet, PubRel):
            self._begun.discard(packet.packet_id)
            self._answer(client, PubComp(packet.packet_id))
        elif isinstance(packet, SubAck):
            self._subscribed = max(packet.reason_codes) < FAILURE

    def _on_message(self, packet: Publish) -> None:
        self.messages += 1
        if packet.qos == 2:
            if packet.packet_id in self._begun:
                return
            self._begun.add(packet.packet_id)
        if fault := note(packet.payload, self.received):
            self.findings.append(f"{self.name} got {fault}")

    def _answer(self, client: Client, packet: Packet) -> None:
        if self.pause:
            asyncio.get_running_loop().call_later(self.pause, client.send, packet)
        else:
            client.send(packet)
