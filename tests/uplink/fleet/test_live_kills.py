"""Nothing acknowledged is lost, whenever gateway, link and fleet end and whatever that answers."""

import asyncio
import os
import signal
from functools import partial
from pathlib import Path
from random import SystemRandom

import pytest

from gateway.mqtt.packets import ConnAck, PubAck, Publish
from gateway.mqtt.properties import Properties
from gateway.mqtt.reason_codes import ReasonCode
from tests.support.disk.ledger_image import check_ledger
from tests.support.disk.small_disk import SmallDisk
from tests.support.disk.storage import until
from tests.support.fleet.fleet_broker import FleetBroker
from tests.support.fleet.slow_link import SlowLink
from tests.support.processes.gateway_process import GatewayProcess
from tests.support.raw_client import RawClient

ROUNDS = int(os.environ.get("TIDEGATE_CRASH_ROUNDS", "2"))

HELD_BACK = 100.0
"""Seconds within which the gateway sends again after refusals: it waits up to 60 for each."""

CONFIG = """\
[gateway]
id = "barn"
[uplink]
url = "mqtt://127.0.0.1:{port}"
[[uplink.rule]]
topic = "sensors/#"
[[listener]]
host = "127.0.0.1"
"""


class _Fleet:
    """Gives a broker another way to answer in each round, and knows what it has taken."""

    def __init__(self, broker: FleetBroker) -> None:
        self.taken: set[bytes] = set()
        self._broker = broker
        self._random = SystemRandom()
        self._answers = [self._take, self._late, self._for_now_not, self._die, self._silent]
        broker.puback = self._take

    def change(self) -> None:
        """Answer differently from now on; the next connection has another window."""
        self._broker.puback = self._random.choice(self._answers)
        maximum = self._random.choice([None, 1, 3])
        self._broker.connack = ConnAck(properties=Properties(receive_maximum=maximum))

    def recover(self) -> None:
        """Take everything; what was met with silence comes again on a new connection."""
        self._broker.puback = self._take
        self._broker.connack = ConnAck()
        self._broker.drop()

    def _take(self, publish: Publish) -> ReasonCode:
        self.taken.add(publish.payload)
        return ReasonCode.SUCCESS

    def _late(self, publish: Publish) -> None:
        """Acknowledge around the time at which the gateway stops to wait for it."""
        connections = self._broker.connections

        def acknowledge() -> None:
            if self._broker.connections == connections:
                self._broker.acknowledge(publish, self._take(publish))

        delay = self._random.choice([0.1, 0.24, 0.26, 0.5])
        asyncio.get_running_loop().call_later(delay, acknowledge)

    def _for_now_not(self, publish: Publish) -> ReasonCode:
        if self._random.random() < 0.1:
            return ReasonCode.QUOTA_EXCEEDED
        return self._take(publish)

    def _die(self, publish: Publish) -> ReasonCode | None:
        """End between PUBLISH and PUBACK, with or without the message."""
        if self._random.random() < 0.9:
            return self._take(publish)
        if self._random.random() < 0.5:
            self._take(publish)
        self._broker.drop()
        return None

    def _silent(self, _publish: Publish) -> None:
        return None


class _Publisher:
    """Publishes numbered payloads at QoS 1, and knows which were acknowledged."""

    def __init__(self) -> None:
        self.number = 0
        self.acknowledged: set[bytes] = set()

    async def publish(self, port: int, count: int) -> None:
        """Publish until all are acknowledged, or until the gateway is gone."""
        waiting: dict[int, bytes] = {}
        client = await RawClient.open(port)
        try:
            await client.connect_as("publisher")
            for _ in range(count):
                self.number += 1
                payload = b"%d" % self.number
                waiting[self.number] = payload
                await client.send(Publish("sensors/n1", payload, 1, packet_id=self.number))
                await asyncio.sleep(0.002)
            while waiting:
                answer = await client.receive()
                assert isinstance(answer, PubAck)
                payload = waiting.pop(answer.packet_id)
                if answer.reason_code == ReasonCode.SUCCESS:
                    self.acknowledged.add(payload)
        except (ConnectionError, EOFError):
            return
        finally:
            await client.close()


@pytest.mark.uncovered
@pytest.mark.parametrize("round_trip", [0.001, 0.05, 0.5])
async def test_nothing_acknowledged_is_lost_when_gateway_and_link_end_at_any_time(
    tmp_path: Path, fleet_broker: FleetBroker, round_trip: float
) -> None:
    link = SlowLink(fleet_broker.port, round_trip)
    await link.start()
    gateway = GatewayProcess(tmp_path, CONFIG.format(port=link.port))
    publisher, random, fleet = _Publisher(), SystemRandom(), _Fleet(fleet_broker)
    try:
        for each in range(2 * ROUNDS):
            online = _online(fleet_broker)
            if gateway.process is None:
                await asyncio.to_thread(gateway.start)
                await until(partial(_more_online, fleet_broker, online))
            publishing = asyncio.create_task(publisher.publish(gateway.port, 100))
            await asyncio.sleep(random.uniform(0.02, 0.3 + round_trip))
            if each % 2:
                link.cut()
                await publishing
                fleet.change()
            else:
                await asyncio.to_thread(gateway.kill)
                await publishing
                data, scratch = gateway.data, tmp_path / "scratch"
                on_disk = await asyncio.to_thread(
                    check_ledger, data, scratch, fleet_broker.publishes
                )
        fleet.recover()
        await until(lambda: publisher.acknowledged <= fleet.taken, HELD_BACK)
        await asyncio.to_thread(gateway.stop, signal.SIGTERM)
    finally:
        await asyncio.to_thread(gateway.kill)
        await link.stop()
    named: dict[str, bytes] = {}
    for publish in fleet_broker.data:
        seq = dict(publish.properties.user_properties)["seq"]
        assert named.setdefault(seq, publish.payload) == publish.payload  # never used twice
    assert len(publisher.acknowledged) >= 100
    assert on_disk


@pytest.mark.uncovered
@pytest.mark.mount
async def test_nothing_acknowledged_is_lost_on_a_full_disk(
    tmp_path: Path, fleet_broker: FleetBroker
) -> None:
    disk, link = SmallDisk(tmp_path / "data", 4), SlowLink(fleet_broker.port, 0.01)
    await link.start()
    await asyncio.to_thread(disk.mount)
    gateway = GatewayProcess(tmp_path, CONFIG.format(port=link.port))
    publisher, fleet = _Publisher(), _Fleet(fleet_broker)
    try:
        await asyncio.to_thread(gateway.start)
        await until(partial(_more_online, fleet_broker, 0))
        publishing = asyncio.create_task(publisher.publish(gateway.port, 1_000))
        await until(lambda: len(publisher.acknowledged) >= 100)
        await asyncio.to_thread(
            disk.fill
        )  # live messages go up, and are refused when it is noticed
        await asyncio.sleep(0.5)
        link.cut()
        await asyncio.sleep(0.5)
        await asyncio.to_thread(gateway.kill)
        await publishing
        await asyncio.to_thread(disk.empty)
        await asyncio.to_thread(gateway.start)
        await until(lambda: publisher.acknowledged <= fleet.taken, HELD_BACK)
        await asyncio.to_thread(gateway.kill)
        scratch = tmp_path / "scratch"
        await asyncio.to_thread(check_ledger, gateway.data, scratch, fleet_broker.publishes)
    finally:
        await asyncio.to_thread(gateway.kill)
        await asyncio.to_thread(disk.unmount)
        await link.stop()


def _more_online(broker: FleetBroker, than: int) -> bool:
    return _online(broker) > than


def _online(broker: FleetBroker) -> int:
    return sum(b'"online"' in publish.payload for publish in broker.publishes)
