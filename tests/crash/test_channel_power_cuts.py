"""The power goes at any moment: what a channel's publisher was promised comes to a consumer."""

import asyncio
import shutil
from collections.abc import Iterator
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest

from crashtest.client import PATIENCE, Client
from crashtest.numbers import name_in, payload_of
from gateway.config.load import load
from gateway.mqtt.packets import Connect, Packet, PubAck, Publish, Subscribe, SubscriptionRequest
from gateway.mqtt.properties import Properties
from tests.crash.conftest import LONG, MakeGateway
from tests.support.disk.disk_recorder import Operation, operations, recorder
from tests.support.disk.promises import Number, Promises, _Connection
from tests.support.gateway_here import Gateway
from tests.support.ports import free_port
from tests.support.power_cut.clients import session
from tests.support.power_cut.disk import Disk

CUTS = 40 if LONG else 4
"""Moments of a recording at which the power goes: each close behind an answer."""

LIES = (-1, -2, -3)
"""Power cuts of a disk that syncs nothing: by chance one of them may leave all that was written."""

TOGETHER = 5
"""Messages that are on their way to the gateway at one time, and so may share a row."""

MESSAGES = 60

CONFIGURATION = """\
[[listener]]
host = "127.0.0.1"
port = {port}
[[channel]]
name = "jobs"
filter = "jobs/#"
KEYS
"""
LEVELS = (0, 2, 1)
"""The remainders of numbers whose priority is high, normal and low."""

KEYS = 5
"""Remainders of numbers that are keys of last values."""

KINDS = {
    "memory": "memory_messages = 1000",
    "spilled": "memory_messages = 2",
    "priorities": """memory_messages = 2
priority = "CASE payload.number % 3 WHEN 0 THEN 'high' WHEN 1 THEN 'low' END"
""",
    "last values": f'last_value = "payload.number % {KEYS}"',
}

SHARED = "$share/jobs/jobs/#"


@dataclass(slots=True)
class ChannelPromises(Promises):
    """Consumers were sent the `given_out` messages; the PUBACK of those `taken` was received."""

    taken: set[Number] = field(default_factory=set)
    given_out: set[Number] = field(default_factory=set)
    _given: dict[tuple[int, int], Number] = field(default_factory=dict)

    def _said(self, connection: _Connection, packet: Packet) -> None:
        Promises._said(self, connection, packet)
        if isinstance(packet, Publish):
            number = self._given[id(connection), packet.packet_id or 0] = name_in(packet.payload)
            self.given_out.add(number)

    def _heard(self, connection: _Connection, packet: Packet) -> None:
        Promises._heard(self, connection, packet)
        if isinstance(packet, PubAck):
            self.taken.add(self._given[id(connection), packet.packet_id])


async def feed(port: int, random: Random) -> None:
    """Publish numbers, a few at a time."""
    client = await session(port, "feeder")
    packets = client.packets()
    for first in range(1, MESSAGES, TOGETHER):
        numbers = range(first, first + TOGETHER)
        payloads = [payload_of("feeder", each, random.choice((0, 0, 1_000))) for each in numbers]
        client.send(
            *(
                Publish("jobs/a", payload, 1, packet_id=number)
                for number, payload in zip(numbers, payloads, strict=True)
            )
        )
        for _ in numbers:
            await anext(packets)
    client.close()


async def work(port: int, random: Random) -> None:
    """Consume for a while, with connections that end while messages are in flight."""
    while True:
        limits = Properties(receive_maximum=random.choice((1, 4, 100)))
        client = await Client.connect(port, Connect("worker", properties=limits))
        client.send(Subscribe(1, [SubscriptionRequest(SHARED, 1)]))
        left = random.randrange(1, 30)
        try:
            async with asyncio.timeout(0.2):
                async for packet in client.packets():
                    left -= 1
                    if isinstance(packet, Publish) and random.random() < 0.8:
                        client.send(PubAck(packet.packet_id))
                    if not left:
                        break
        except TimeoutError:
            continue  # all that it has room for is in flight
        finally:
            client.abort()
        await asyncio.sleep(random.choice((0, 0.02)))


async def record(make_gateway: MakeGateway, root: Path, seed: int, kind: str) -> list[Operation]:
    """Return all that a gateway did for a publisher and a consumer of its channel."""
    trace, random = root.with_name("trace"), Random(seed)
    gateway = make_gateway(CONFIGURATION.replace("KEYS", KINDS[kind]), wrapper=recorder(trace))
    gateway.data = root / "data"
    await gateway.start()
    worker = asyncio.create_task(work(gateway.port, random))
    await feed(gateway.port, random)
    worker.cancel()
    with suppress(asyncio.CancelledError):
        await worker
    assert gateway.stop() == 0
    return [*operations(trace.read_text())]


async def come(image: Path, kind: str, findings: list[str]) -> list[Number]:
    """Return what a consumer gets from a gateway that starts on what is left of a disk."""
    file = image / "gateway.toml"
    file.write_text(CONFIGURATION.replace("KEYS", KINDS[kind]).format(port=free_port()))
    found: list[Number] = []
    async with AsyncExitStack() as stack:
        gateway = Gateway(load(file), image / "data", stack)
        await gateway.start()
        if gateway.database.salvage is not None:
            findings.append("the database was taken for damaged")
        (channel,) = gateway.broker.channels.named("jobs")
        owed = channel.depth
        client = await session(gateway.listeners[0].port, "last")
        client.send(Subscribe(1, [SubscriptionRequest(SHARED, 1)]))
        packets = client.packets()
        async with asyncio.timeout(PATIENCE):
            while len(found) < owed:
                packet = await anext(packets)
                if isinstance(packet, Publish):
                    client.send(PubAck(packet.packet_id))
                    found.append(name_in(packet.payload))
        client.close()
    return found


def at(
    moment: int, calls: list[Operation], root: Path, *, lies: bool
) -> tuple[Disk, ChannelPromises]:
    """Return the disk and what was promised at a line; a disk that lies syncs nothing."""
    disk, promises = Disk(root), ChannelPromises()
    for call in calls:
        if call.ended < moment and not (lies and "sync" in call.name):
            disk.apply(call)
        if call.ended < moment or (call.began < moment and call.name.startswith("send")):
            promises.note(call)
    return disk, promises


def most_owed(calls: list[Operation]) -> int:
    """Return a line at which the most messages were promised and not taken."""
    promises, most, moment = ChannelPromises(), 0, 0
    for call in calls:
        promises.note(call)
        owed = len(promises.kept - promises.taken)
        if owed > most:
            most, moment = owed, call.ended + 1
    return moment


def faults(kind: str, promises: ChannelPromises, came: list[Number]) -> list[str]:
    """Return what the messages that came lack, or should not be."""
    if kind == "last values":
        return [*_faults_of_keys(promises, came)]
    lost = [f"{each} is lost" for each in sorted(promises.kept - promises.taken - {*came})]
    found = sorted({*came})
    if kind == "priorities":
        found.sort(key=lambda each: LEVELS.index(each[1] % len(LEVELS)))
    return lost + ([] if came == found else [f"{came} came, in order {found}"])


def _faults_of_keys(promises: ChannelPromises, came: list[Number]) -> Iterator[str]:
    """Yield keys that come twice, with an older value than was sent, or not with the newest."""
    for key in range(KEYS):
        found = [number for _, number in came if number % KEYS == key]
        sent = max((number for _, number in promises.given_out if number % KEYS == key), default=0)
        taken = max((number for _, number in promises.taken if number % KEYS == key), default=0)
        kept = max((number for _, number in promises.kept if number % KEYS == key), default=0)
        if len(found) > 1:
            yield f"key {key} came {len(found)} times: {found}"
        if found and found[-1] < sent:
            yield f"{found[-1]} came after {sent} was sent"
        if max([taken, *found]) < kept:
            yield f"{kept} is lost"


@pytest.mark.strace
@pytest.mark.parametrize("kind", KINDS)
async def test_what_a_channel_was_given_before_the_power_went_comes(
    make_gateway: MakeGateway, tmp_path: Path, seed: int, kind: str
) -> None:
    """In memory and spilled: nothing lost, nothing twice, and in order, of each level and key."""
    root, random = tmp_path / "disk", Random(seed)
    root.mkdir()
    calls = await record(make_gateway, root, seed, kind)
    answers = [call.began + 1 for call in calls if call.name.startswith("send")]
    moments = sorted(random.choices(answers, k=CUTS))
    findings = {}
    for moment in [*moments, *LIES]:
        lies = moment < 0
        disk, promises = at(most_owed(calls) if lies else moment, calls, root, lies=lies)
        image = tmp_path / f"image{moment}"
        disk.cut(random, image)
        findings[moment] = reported = list[str]()
        came = await come(image, kind, reported)
        reported += faults(kind, promises, came)
        shutil.rmtree(image)
    lost_by_a_liar = [each for lie in LIES for each in findings.pop(lie)]
    assert {moment: reported for moment, reported in findings.items() if reported} == {}
    assert lost_by_a_liar, "a disk that syncs nothing was not noticed"
