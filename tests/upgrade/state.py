"""Every kind of state that a data folder can have: how it gets there, and how it is found again.

`leave` speaks to a gateway of any version, `find` to one of today. What is left has no expiry:
a folder is found again years later.
"""

import asyncio
import json
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from gateway.mqtt.packets import Disconnect, PubAck, PubComp, Publish, PubRec, PubRel, Will
from gateway.mqtt.properties import NO_PROPERTIES, Properties
from gateway.mqtt.reason_codes import ReasonCode
from tests.support.disk.storage import until
from tests.support.fleet.fleet_broker import FleetBroker
from tests.support.processes.gateway_process import tidegate
from tests.support.raw_client import Clients, RawClient

CONFIG = """
[gateway]
id = "barn"
[history]
keep = "36500d"
[[channel]]
name = "jobs"
filter = "orders/#"
[[uplink]]
url = "mqtt://127.0.0.1:{port}"
[[uplink.rule]]
topic = "measured/#"
[[uplink.rule]]
topic = "levels/#"
where = "CHANGED(payload.value)"
[[uplink.rule]]
topic = "alarms/#"
stream = "alarms"
"""

FOR_EVER = """
[broker]
maximum_anonymous_session_expiry = 4294967295
"""
"""A bound that e6832cd6 does not know."""

NODE = """
[[simulator]]
port = "{folder}/ttySIM"
[[serial]]
port = "{folder}/ttySIM"
"""
"""A node whose frames the first gateway remembers; the second one has no node."""

FOREVER = Properties(session_expiry_interval=0xFFFFFFFF)
DESCRIBED = Properties(
    content_type="text/plain",
    response_topic="answers",
    correlation_data=b"\x01\x02",
    payload_format_indicator=1,
    user_properties=(("site", "A"), ("site", "B")),
)
REFUSED = b'{"value":-1}'


@dataclass
class Left:
    """What is only known once it was left: how the fleet knows what it has had."""

    epoch: str
    sent: list[str]


def url(port: int) -> str:
    return f"mqtt://127.0.0.1:{port}"


def seq(publish: Publish) -> str:
    return dict(publish.properties.user_properties)["seq"]


def answer(publish: Publish) -> ReasonCode:
    refused = publish.payload == REFUSED
    return ReasonCode.PAYLOAD_FORMAT_INVALID if refused else ReasonCode.SUCCESS


async def connected(clients: Clients, name: str, **fields: object) -> RawClient:
    return await clients.connect(name, clean_start=False, properties=FOREVER, **fields)


async def leave(clients: Clients, data: Path, fleet: FleetBroker) -> Left:
    """Have every kind of state in a gateway's data folder, which is killed afterwards.

    The clients' connections must not end before the gateway does.
    """
    fleet.puback = answer
    await leave_sessions(clients)
    publisher = await connected(clients, "publisher")
    await publish(publisher, "config/a", b"described", retain=True, properties=DESCRIBED)
    await publish(publisher, "config/b", b"plain", retain=True)
    for number in range(3):
        await publish(publisher, "house/a", b"%d" % number)
        await publish(publisher, "orders/1", b"order %d" % number)
        await publish(publisher, "valves/1", b"%d" % number, qos=2)
        await publish(publisher, "tasks/1", b"%d" % number)
    await publish(publisher, "$delay/1/house/later", b"later")
    await leave_uplink(clients, publisher, data, fleet)
    await leave_half_done(clients, publisher)
    return Left(seq(fleet.data[0]).split(".")[0], [seq(each) for each in fleet.data])


async def leave_sessions(clients: Clients) -> None:
    reader = await connected(clients, "reader")
    assert await reader.subscribe("house/#", 1) == 1
    assert await reader.subscribe("valves/#", 2) == 2
    assert await reader.subscribe("$share/team/tasks/#", 1) == 1
    filtered = Properties(user_properties=(("$where", "payload.value > 20"),))
    assert await reader.subscribe("meters/#", 1, filtered) == 1
    await reader.send(Disconnect())


async def leave_uplink(
    clients: Clients, publisher: RawClient, data: Path, fleet: FleetBroker
) -> None:
    """Have messages that the fleet has, that it refused, and that it has not had yet."""
    for value in (1, 2, 3):
        await publish(publisher, "measured/a", b'{"value":%d}' % value)
    await publish(publisher, "measured/a", REFUSED)
    await publish(publisher, "levels/1", b'{"value":5}')
    await until(lambda: len(fleet.data) == 5)
    await until(lambda: rows_of(data)["rejected"] == 1)
    await fleet.stop()
    command("uplink", "pause", url(clients.port))
    for value in (4, 5, 6):
        await publish(publisher, "measured/a", b'{"value":%d}' % value, properties=DESCRIBED)
    await publish(publisher, "alarms/fire", b"smoke")


async def leave_half_done(clients: Clients, publisher: RawClient) -> None:
    """Have QoS 2 messages half done in both directions, and somebody with a will."""
    half = await connected(clients, "half")
    assert await half.subscribe("lamps/#", 2) == 2
    await publish(publisher, "lamps/1", b"on", qos=2)
    lamp = await half.take(Publish)
    await half.send(PubRec(lamp.packet_id))
    assert (await half.take(PubRel)).packet_id == lamp.packet_id
    await half.send(Publish("house/half", b"half", 2, packet_id=7))
    await half.take(PubRec)
    will = Will("house/will", b"gone", qos=1)
    await connected(clients, "lost", will=will)


async def publish(
    client: RawClient,
    topic: str,
    payload: bytes,
    qos: int = 1,
    *,
    retain: bool = False,
    properties: Properties = NO_PROPERTIES,
) -> None:
    await client.send(Publish(topic, payload, qos, retain, packet_id=5, properties=properties))
    if qos == 1:
        assert (await client.take(PubAck)).reason_code < 0x80
    else:
        await client.take(PubRec)
        await client.send(PubRel(5))
        await client.take(PubComp)


async def find(clients: Clients, data: Path, fleet: FleetBroker, left: Left) -> None:
    """Fail unless all that `leave` left is there."""
    await find_half_done(clients)
    await find_sessions(clients)
    await find_retained(clients)
    await find_channel(clients)
    await find_uplink(clients, data, fleet, left)


async def find_sessions(clients: Clients) -> None:
    reader = await connected(clients, "reader")
    assert reader.connack.session_present
    owed = [*("house/a",) * 3, *("valves/1",) * 3, *("tasks/1",) * 3]
    owed += ["house/later", "house/will", "house/half"]
    came: list[tuple[str, bytes]] = []
    while len(came) < len(owed):
        message = await received(reader)
        came.append((message.topic, message.payload))
    assert sorted(topic for topic, _ in came) == sorted(owed)
    for topic in ("house/a", "valves/1", "tasks/1"):
        assert [payload for each, payload in came if each == topic] == [b"0", b"1", b"2"]
    publisher = await connected(clients, "publisher")
    for value in (10, 30):  # and its subscriptions are as they were
        await publish(publisher, "meters/1", b'{"value":%d}' % value)
    assert (await received(reader)).payload == b'{"value":30}'
    assert [each for each in await reader.waiting() if not isinstance(each, PubRel)] == []


async def received(client: RawClient) -> Publish:
    """Return the next message, acknowledged."""
    while isinstance(packet := await client.receive(), PubRel):
        await client.send(PubComp(packet.packet_id))
    assert isinstance(packet, Publish), packet
    await client.send((PubAck if packet.qos == 1 else PubRec)(packet.packet_id))
    return packet


async def find_half_done(clients: Clients) -> None:
    half = await connected(clients, "half")
    assert half.connack.session_present
    release = await half.take(PubRel)  # and the message does not come again
    await half.send(PubComp(release.packet_id))
    await half.send(Publish("house/half", b"half", 2, packet_id=7, dup=True))
    assert (await half.take(PubRec)).packet_id == 7
    await half.send(PubRel(7))
    assert (await half.take(PubComp)).packet_id == 7


async def find_retained(clients: Clients) -> None:
    client = await connected(clients, "somebody")
    assert await client.subscribe("config/#") == 0
    came = {message.topic: message for message in [await client.take(Publish) for _ in "ab"]}
    assert came["config/b"].payload == b"plain"
    described = came["config/a"]
    assert (described.payload, described.retain) == (b"described", True)
    assert described.properties == DESCRIBED


async def find_channel(clients: Clients) -> None:
    worker = await connected(clients, "worker")
    assert await worker.subscribe("$share/jobs/orders/#", 1) == 1
    assert [(await received(worker)).payload for _ in range(3)] == [
        b"order %d" % number for number in range(3)
    ]


async def find_uplink(clients: Clients, data: Path, fleet: FleetBroker, left: Left) -> None:
    refused = json.loads(command("uplink", "rejected", "list", "--json", url(clients.port)))
    assert len(refused) == 1, refused
    publisher = await connected(clients, "publisher")
    for value in (5, 6):
        await publish(publisher, "levels/1", b'{"value":%d}' % value)
    await fleet.start()
    await asyncio.sleep(0)
    assert fleet.data == []  # it is paused
    command("uplink", "resume", url(clients.port))
    await until(lambda: len(fleet.data) == 5)
    waited = [each for each in fleet.data if seq(each).startswith(left.epoch)]
    topics = [each.topic.removeprefix("tidegate/barn/data/") for each in fleet.data]
    assert sorted(topics) == ["alarms/fire", "levels/1", *["measured/a"] * 3]
    assert [each.payload for each in waited if "measured" in each.topic] == [
        b'{"value":%d}' % value for value in (4, 5, 6)
    ]
    assert sorted(map(seq, waited)) == [
        f"{left.epoch}.alarms.1",
        *(f"{left.epoch}.main.{number}" for number in (6, 7, 8)),
    ]
    assert not {seq(each) for each in fleet.data} & set(left.sent)
    (new,) = (each for each in fleet.data if each not in waited)
    assert (new.topic, new.payload) == ("tidegate/barn/data/levels/1", b'{"value":6}')
    why = command("why", left.sent[0], "--data", str(data))
    assert "measured/a" in why, why


def rows_of(data: Path) -> dict[str, int]:
    """Return how many rows each table of a data folder's database has."""
    with closing(sqlite3.connect(f"file:{data / 'tidegate.db'}?mode=ro", uri=True)) as database:
        names = database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
        count = "SELECT count(*) FROM "
        return {name: database.execute(count + name).fetchone()[0] for (name,) in names}


def command(*words: str) -> str:
    done = tidegate(*words)
    assert done.returncode == 0, done.stderr
    return done.stdout
