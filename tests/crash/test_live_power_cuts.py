"""The power goes while messages go up live: none is lost that never was on this disk."""

import asyncio
import shutil
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from random import Random

import pytest

from crashtest.numbers import name_in
from gateway.config.load import load
from gateway.counters import Counters
from gateway.mqtt.packets import Publish
from gateway.mqtt.reason_codes import ReasonCode
from tests.crash.conftest import LONG, MakeGateway
from tests.support.disk.disk_recorder import Operation, operations, recorder
from tests.support.disk.ledger_image import check_ledger
from tests.support.disk.live_promises import FleetPackets
from tests.support.disk.promises import Number, Promises
from tests.support.disk.storage import until
from tests.support.fleet.fleet_broker import FleetBroker
from tests.support.gateway_here import Gateway
from tests.support.ports import free_port
from tests.support.power_cut.clients import MESSAGES, publish
from tests.support.power_cut.disk import Disk

CUTS = 50 if LONG else 6

RECORDINGS = max(1, LONG // 20)

CONFIGURATION = """\
[gateway]
id = "cut"
[[listener]]
host = "127.0.0.1"
port = {port}
[uplink]
url = "mqtt://127.0.0.1:FLEET"
[[uplink.rule]]
topic = "crash/#"
"""

PATIENCE = 30.0
"""Seconds in which all that waits has gone up; the gateway waits longer after each refusal."""


@pytest.fixture
async def fleet() -> AsyncIterator[FleetBroker]:
    fleet = FleetBroker()
    await fleet.start()
    yield fleet
    await fleet.stop()


class Moods:
    """A fleet that acknowledges at once, late, or not at all and then ends the connection."""

    def __init__(self, fleet: FleetBroker, random: Random) -> None:
        self._fleet = fleet
        self._random = random

    def answer(self, publish: Publish) -> ReasonCode | None:
        """Return what the fleet says to a message; None while it says nothing."""
        fate = self._random.random()
        if "/data/" not in publish.topic or fate < 0.9:
            return ReasonCode.SUCCESS
        if fate < 0.97:
            connections = self._fleet.connections
            asyncio.get_running_loop().call_later(0.3, self._acknowledge, publish, connections)
        else:
            self._fleet.drop()
        return None

    def _acknowledge(self, publish: Publish, connections: int) -> None:
        if self._fleet.connections == connections:
            self._fleet.acknowledge(publish, ReasonCode.SUCCESS)


async def record(
    make_gateway: MakeGateway, fleet: FleetBroker, folder: Path, seed: int
) -> list[Operation]:
    """Return all that a gateway did in two starts while its clients published."""
    random, calls = Random(seed), list[Operation]()
    text = CONFIGURATION.replace("FLEET", str(fleet.port))
    for life in range(2):
        fleet.puback = lambda _: ReasonCode.SUCCESS
        trace = folder / f"trace{life}"
        gateway = make_gateway(text, wrapper=recorder(trace))
        gateway.data = folder / "disk" / "data"
        connections = fleet.connections
        await gateway.start()
        await until(partial(_connected, fleet, connections))
        first = 1 + life * 4 * MESSAGES
        await publish(gateway.port, "alone", 1, random, first)
        fleet.puback = Moods(fleet, random).answer
        await asyncio.gather(
            *(publish(gateway.port, f"p{qos}", qos, random, first) for qos in (1, 2))
        )
        assert await asyncio.to_thread(gateway.stop) == 0
        begin = calls[-1].ended + 1 if calls else 0
        calls += operations(trace.read_text(), begin)
    return calls


def _connected(fleet: FleetBroker, connections: int) -> bool:
    return fleet.connections > connections


def _is_empty(counters: Counters) -> bool:
    counters.refresh()
    return not counters.count("tidegate/outbox/rows")


class LiveCuts:
    """Cuts the power of one recording at moments; `unwritten` counts what was on no disk."""

    def __init__(self, calls: list[Operation], folder: Path, seed: int) -> None:
        self.unwritten = 0
        self._calls = calls
        self._folder = folder
        self._random = Random(seed)

    async def cut(self, moment: int) -> list[str]:
        """Return what is broken at this moment: a sentence for each message."""
        disk, promises, fleet = Disk(self._folder / "disk"), Promises(), FleetPackets()
        for call in self._calls:
            if call.ended < moment:
                disk.apply(call)
            if call.ended < moment or (call.began < moment and call.name.startswith("send")):
                fleet.note(call)
                promises.note(call)
        image = self._folder / "image"
        shutil.rmtree(image, ignore_errors=True)
        disk.cut(self._random, image)
        rest = await self._go_up(image)
        return [
            f"cut at {moment} of {self._calls[-1].ended}: {text}"
            for text in self._compare(promises.kept, fleet, rest)
        ]

    async def _go_up(self, image: Path) -> list[Publish]:
        """Return what a gateway that starts on this sends to a fleet that takes it all."""
        fleet = FleetBroker()
        await fleet.start()
        file = image / "gateway.toml"
        text = CONFIGURATION.replace("FLEET", str(fleet.port))
        file.write_text(text.format(port=free_port()))
        async with AsyncExitStack() as stack:
            stack.push_async_callback(fleet.stop)
            gateway = Gateway(load(file), image / "data", stack)
            await gateway.start()
            assert gateway.database.salvage is None
            await until(partial(_connected, fleet, 0), PATIENCE)
            await until(partial(_is_empty, gateway.counters), PATIENCE)
        return fleet.publishes

    def _compare(
        self, kept: set[Number], fleet: FleetPackets, rest: list[Publish]
    ) -> Iterable[str]:
        before = numbered(fleet.acknowledged)
        after = numbered(rest)
        for number in sorted(kept):
            keys = before[number] | after[number]
            if len(keys) != 1:
                yield f"{number} came to the fleet under the keys {keys}"
        self.unwritten += sum(not after[number] for number in kept)
        named: dict[str, Number] = {}
        for number, keys in [*numbered(fleet.sent).items(), *after.items()]:
            for key in keys:
                if named.setdefault(key, number) != number:
                    yield f"{key} names {number} and {named[key]}"
        try:
            image = self._folder / "image" / "data"
            check_ledger(image, self._folder / "scratch", [*fleet.acknowledged, *rest])
        except AssertionError as error:
            yield f"the ledger: {error}"


def numbered(packets: Iterable[Publish]) -> defaultdict[Number, set[str]]:
    """Return the keys under which each message came."""
    found: defaultdict[Number, set[str]] = defaultdict(set)
    for packet in packets:
        if "/data/" in packet.topic:
            found[name_in(packet.payload)].add(dict(packet.properties.user_properties)["seq"])
    return found


def moments(calls: list[Operation], random: Random) -> list[int]:
    """Return lines of the recording that follow upon a packet, one way or the other."""
    near = [call.ended + 1 for call in calls if call.name in ("sendto", "sendmsg", "recvfrom")]
    return sorted(random.choices(near, k=CUTS))


@pytest.mark.strace
async def test_what_went_up_live_is_with_the_fleet_or_on_disk(
    make_gateway: MakeGateway, tmp_path: Path, fleet: FleetBroker, seed: int
) -> None:
    root = tmp_path / "disk"
    for number in range(RECORDINGS):
        root.mkdir()
        calls = await record(make_gateway, fleet, tmp_path, seed + number)
        cuts = LiveCuts(calls, tmp_path, seed + number)
        for moment in moments(calls, Random(seed + number)):
            assert await cuts.cut(moment) == []
        assert cuts.unwritten
        shutil.rmtree(root)
