"""The power goes at any moment: what a channel's publisher was promised comes to a consumer."""

import asyncio
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest

from crashtest.client import PATIENCE, Client
from crashtest.numbers import name_in, payload_of
from gateway.broker.channels.channel import Channel
from gateway.config.load import load
from gateway.mqtt.packets import Connect, Packet, PubAck, Publish, Subscribe, SubscriptionRequest
from gateway.mqtt.properties import Properties
from gateway.mqtt.reason_codes import FAILURE, ReasonCode
from tests.crash.conftest import LONG, MakeGateway
from tests.support.disk.disk_recorder import Operation, operations, recorder
from tests.support.disk.promises import Number, Promises, _Connection
from tests.support.disk.storage import until
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
    "returned": "inflight_timeout = 1\nmax_attempts = 0",
    "too old": """maximum_age = 1
dead_letter_topic = "dead"
dead_letter_expired = true
[[channel]]
name = "dead"
filter = "dead"
""",
    "last values": f'last_value = "payload.number % {KEYS}"',
}

SHARED = "$share/jobs/jobs/#"


@dataclass(slots=True)
class ChannelPromises(Promises):
    """Identifiers of the messages `given_out` to consumers; the PUBACK of those `taken` came."""

    taken: set[Number] = field(default_factory=set)
    given_out: dict[Number, str] = field(default_factory=dict)
    _given: dict[tuple[int, int], Number] = field(default_factory=dict)

    def _said(self, connection: _Connection, packet: Packet) -> None:
        Promises._said(self, connection, packet)
        if isinstance(packet, Publish):
            number = self._given[id(connection), packet.packet_id or 0] = name_in(packet.payload)
            self.given_out[number] = own(packet)["id"]

    def _heard(self, connection: _Connection, packet: Packet) -> None:
        Promises._heard(self, connection, packet)
        if isinstance(packet, PubAck) and packet.reason_code < FAILURE:
            self.taken.add(self._given[id(connection), packet.packet_id])


def own(packet: Publish) -> dict[str, str]:
    """Return the gateway's own properties of a message."""
    return dict(packet.properties.user_properties[-3:])


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
        await asyncio.sleep(random.choice((0, 0.05)))  # the consumer works meanwhile
    client.close()


def treat(client: Client, packet: Publish, what: str) -> None:
    """Acknowledge a message, refuse it, return it at once or later, or ask for more time."""
    if what == "acknowledge":
        client.send(PubAck(packet.packet_id))
    elif what == "refuse":
        client.send(PubAck(packet.packet_id, ReasonCode.UNSPECIFIED_ERROR))
    elif what:
        word, _, delay = what.partition(" ")
        payload = f"{own(packet)['id']} {delay}".encode()
        client.send(Publish(f"$CONTROL/tidegate/channel/jobs/{word}", payload))


async def work(port: int, random: Random, kind: str) -> None:
    """Consume for a while, with connections that end while messages are in flight."""
    words = ["acknowledge", "acknowledge", "acknowledge", "acknowledge", ""]
    if kind == "returned":
        words += ["refuse", "requeue", "requeue 1", "requeue 60", "touch"]
    while True:
        limits = Properties(receive_maximum=random.choice((1, 4, 100)))
        client = await Client.connect(port, Connect("worker", properties=limits))
        client.send(Subscribe(1, [SubscriptionRequest(SHARED, 1)]))
        left = random.randrange(1, 30)
        try:
            async with asyncio.timeout(0.2):
                async for packet in client.packets():
                    left -= 1
                    if isinstance(packet, Publish):
                        treat(client, packet, random.choice(words))
                    if not left:
                        break
        except TimeoutError:
            continue  # all that it has room for is in flight
        finally:
            client.abort()
        pauses = (0, 1.2) if kind == "too old" else (0, 0.02)
        await asyncio.sleep(random.choice(pauses))


async def record(make_gateway: MakeGateway, root: Path, seed: int, kind: str) -> list[Operation]:
    """Return all that a gateway did for a publisher and a consumer of its channel."""
    trace, random = root.with_name("trace"), Random(seed)
    gateway = make_gateway(CONFIGURATION.replace("KEYS", KINDS[kind]), wrapper=recorder(trace))
    gateway.data = root / "data"
    await gateway.start()
    worker = asyncio.create_task(work(gateway.port, random, kind))
    await feed(gateway.port, random)
    worker.cancel()
    with suppress(asyncio.CancelledError):
        await worker
    assert gateway.stop() == 0
    return [*operations(trace.read_text())]


async def come(image: Path, kind: str, findings: list[str]) -> list[Publish]:
    """Return what consumers get from a gateway that starts on what is left of a disk."""
    file = image / "gateway.toml"
    file.write_text(CONFIGURATION.replace("KEYS", KINDS[kind]).format(port=free_port()))
    found: list[Publish] = []
    async with AsyncExitStack() as stack:
        gateway = Gateway(load(file), image / "data", stack)
        await gateway.start()
        if gateway.database.salvage is not None:
            findings.append("the database was taken for damaged")
        channels = [*gateway.broker.channels]
        client = await session(gateway.listeners[0].port, "last")
        filters = [f"$queue/{each.settings.share_name}" for each in channels]
        client.send(Subscribe(1, [SubscriptionRequest(each, 1) for each in filters]))
        reading = asyncio.create_task(take_all(client, found))
        await until(lambda: not any(map(has_messages, channels)), PATIENCE)
        reading.cancel()
        client.close()
    return found


def has_messages(channel: Channel) -> bool:
    """Return whether messages wait or are in flight, or are dead letters of the next turn."""
    return channel.depth + channel.in_flight > 0 or channel.alarm.second <= time.monotonic()


async def take_all(client: Client, found: list[Publish]) -> None:
    """Note and acknowledge what comes."""
    async for packet in client.packets():
        if isinstance(packet, Publish):
            found.append(packet)
            client.send(PubAck(packet.packet_id))


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


def most(calls: list[Operation], of: Callable[[ChannelPromises], set[Number]]) -> int:
    """Return a line at which there are the most of these messages."""
    promises, highest, moment = ChannelPromises(), 0, 0
    for call in calls:
        promises.note(call)
        count = len(of(promises))
        if count > highest:
            highest, moment = count, call.ended + 1
    return moment


def owed(promises: ChannelPromises) -> set[Number]:
    """Return what was promised and not taken."""
    return promises.kept - promises.taken


def in_flight(promises: ChannelPromises) -> set[Number]:
    """Return those of them that a consumer was sent."""
    return owed(promises) & promises.given_out.keys()


def faults(kind: str, promises: ChannelPromises, packets: list[Publish]) -> list[str]:
    """Return what the messages that came lack, or should not be."""
    came = [name_in(each.payload) for each in packets]
    others = [
        *_strangers(promises, [each for each in packets if each.topic != "dead"]),
        *(f"{each} is lost" for each in sorted(promises.kept - promises.taken - {*came})),
    ]
    if kind == "last values":
        return [*_strangers(promises, packets), *_faults_of_keys(promises, came)]
    if kind == "too old":  # a letter may be there twice
        return others
    found = sorted({*came})
    if kind == "priorities":
        found.sort(key=lambda each: LEVELS.index(each[1] % len(LEVELS)))
    return others + ([] if came == found else [f"{came} came, in order {found}"])


def _strangers(promises: ChannelPromises, packets: list[Publish]) -> Iterator[str]:
    """Yield messages with another identifier than before."""
    for packet in packets:
        name, now = name_in(packet.payload), own(packet)["id"]
        before = promises.given_out.get(name, now)
        if before != now:
            yield f"{name} was {before} and is {now}"


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
    findings, worst = {}, most(calls, owed)
    moments += [worst, most(calls, in_flight)]
    for moment in [*moments, *LIES]:
        lies = moment < 0
        disk, promises = at(worst if lies else moment, calls, root, lies=lies)
        image = tmp_path / f"image{moment}"
        disk.cut(random, image)
        findings[moment] = reported = list[str]()
        came = await come(image, kind, reported)
        reported += faults(kind, promises, came)
        shutil.rmtree(image)
    lost_by_a_liar = [each for lie in LIES for each in findings.pop(lie)]
    assert {moment: reported for moment, reported in findings.items() if reported} == {}
    assert lost_by_a_liar, "a disk that syncs nothing was not noticed"
