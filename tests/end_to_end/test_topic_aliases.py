"""Topic aliases on real connections: in from paho, out to clients that take them."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import paho.mqtt.client as paho
import pytest
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties as PahoProperties

from gateway.mqtt.packets import MQTT_3_1_1, MQTT_5, Disconnect, PubAck, Publish
from gateway.mqtt.properties import NO_PROPERTIES, Properties
from gateway.mqtt.reason_codes import ReasonCode
from tests.support.gateway_process import GatewayProcess
from tests.support.raw_client import Clients, RawClient

SYS = "$SYS/broker/tidegate/aliases/"
TOPICS = [f"site/floor-{number % 3}/device-{number}/temperature" for number in range(20)]

CONFIG = """
[broker]
sys_interval = 0.1
topic_alias_maximum = {maximum}
topic_alias_maximum_out = {out}
[uplink]
[[uplink.rule]]
topic = "up/#"
"""


@pytest.fixture
def gateway(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[GatewayProcess]:
    process = GatewayProcess(tmp_path, CONFIG.format(**{"maximum": 4, "out": 8} | request.param))
    process.start()
    yield process
    process.kill()


with_settings = pytest.mark.parametrize("gateway", [{}], indirect=True, ids=["gateway"])
switched_off = pytest.mark.parametrize(
    "gateway", [{"maximum": 0, "out": 0}], indirect=True, ids=["off"]
)


class Subscriber:
    """A client that resolves topic aliases and counts what they did."""

    def __init__(self, client: RawClient, maximum: int) -> None:
        self.client = client
        self.maximum = maximum
        self.topics: dict[int, str] = {}
        self.hits = 0

    async def receive(self) -> Publish:
        """Return the next message under the topic it was published to."""
        publish = await self.client.receive()
        assert isinstance(publish, Publish), publish
        alias = publish.properties.topic_alias
        if alias is not None:
            assert 1 <= alias <= self.maximum
            assert not publish.dup
            self.hits += publish.topic == ""
            self.topics[alias] = publish.topic or self.topics[alias]
            publish.topic = self.topics[alias]
        if publish.qos:
            await self.client.send(PubAck(publish.packet_id))
        return publish


async def subscriber(
    clients: Clients,
    maximum: int,
    topic_filter: str = "#",
    *,
    client_id: str = "subscriber",
    version: int = MQTT_5,
    qos: int = 0,
) -> Subscriber:
    properties = Properties(topic_alias_maximum=maximum) if maximum else NO_PROPERTIES
    client = await clients.connect(client_id, version, properties=properties)
    await client.subscribe(topic_filter, qos)
    return Subscriber(client, maximum)


async def until_saved(clients: Clients, saved: int) -> None:
    """Return when `$SYS` says that aliases of clients have saved so many bytes."""
    client = await clients.connect("watcher")
    await client.subscribe(f"{SYS}in/bytes_saved")
    while True:
        packet = await client.receive()
        assert isinstance(packet, Publish)
        if int(packet.payload) == saved:
            return


async def figures(clients: Clients, direction: str) -> dict[str, float]:
    """What `$SYS` says about the aliases of one direction."""
    client = await clients.connect(f"figures of {direction}")
    await client.subscribe(f"{SYS}{direction}/#")
    return {
        packet.topic.rpartition("/")[2]: float(packet.payload)
        for packet in await client.waiting()
        if isinstance(packet, Publish)
    }


def publish_with_paho(port: int, rounds: int) -> None:
    """Publish on four topics, each with an alias that paho sends alone from the second time on."""
    client = paho.Client(CallbackAPIVersion.VERSION2, protocol=MQTTProtocolVersion.MQTTv5)
    client.connect("127.0.0.1", port)
    client.loop_start()
    for number in range(rounds):
        for alias, topic in enumerate(TOPICS[:4], 1):
            properties = PahoProperties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]  # paho has none
            properties.TopicAlias = alias
            sent = client.publish("" if number else topic, topic, qos=1, properties=properties)
            sent.wait_for_publish(30)
            assert sent.is_published()
    client.disconnect()
    client.loop_stop()


@with_settings
async def test_aliases_of_a_paho_client_go_in_and_ours_go_out(clients: Clients) -> None:
    aliased, plain = await subscriber(clients, 2), await subscriber(clients, 0, client_id="plain")
    rounds = 20
    publishing = asyncio.create_task(asyncio.to_thread(publish_with_paho, clients.port, rounds))
    for _ in range(rounds * 4):
        for receiver in (aliased, plain):
            publish = await receiver.receive()
            assert publish.topic == publish.payload.decode()
    await publishing
    assert 0 < aliased.hits < rounds * 4
    assert plain.topics == {}
    saved = 4 * (rounds - 1) * (len(TOPICS[0]) - 3) - 4 * 3
    await until_saved(clients, saved)
    seen = await figures(clients, "in")
    assert (seen["hits"], seen["mappings"], seen["hit_rate"]) == (4 * (rounds - 1), 4, 95.0)
    seen = await figures(clients, "out")
    assert seen["hits"] == aliased.hits
    assert seen["misses"] == rounds * 4 - aliased.hits
    assert seen["evictions"] > 0
    assert seen["bytes_held"] > 2 * len(TOPICS[0])
    assert seen["refused_soft"] == seen["refused_hard"] == 0


@with_settings
async def test_a_great_many_receivers_of_every_kind(clients: Clients) -> None:
    receivers = [
        await subscriber(
            clients,
            (0, 0, 3, 50)[number % 4],
            client_id=f"c{number}",
            version=MQTT_5 if number % 4 else MQTT_3_1_1,
            qos=number // 4 % 2,
        )
        for number in range(60)
    ]
    publisher = await clients.connect("publisher")
    for number in range(40):
        topic = TOPICS[number % 5]
        await publisher.send(Publish(topic, b"%d" % number, 1, packet_id=number + 1))
    for number in range(40):
        for receiver in receivers:
            publish = await receiver.receive()
            assert (publish.topic, publish.payload) == (TOPICS[number % 5], b"%d" % number)
    for number, receiver in enumerate(receivers):
        assert (receiver.hits > 0) == (number % 4 > 1)
        assert all(alias <= 8 for alias in receiver.topics), "ours is the lesser maximum"


@with_settings
async def test_in_order_behind_acknowledgements_that_wait_for_the_disk(clients: Clients) -> None:
    client = await clients.connect("both", properties=Properties(topic_alias_maximum=3))
    await client.subscribe("#")
    receiver = Subscriber(client, 3)
    packets = [
        Publish(f"up/device-{number % 5}/temperature", b"%d" % number, 1, packet_id=number + 1)
        for number in range(100)
    ]
    await client.send(*packets)
    expected, acknowledged = iter(packets), 0
    while acknowledged < len(packets):
        packet = await client.receive()
        if isinstance(packet, PubAck):
            acknowledged += 1
            continue
        assert isinstance(packet, Publish)
        alias = packet.properties.topic_alias
        if alias is not None:
            receiver.hits += packet.topic == ""
            receiver.topics[alias] = packet.topic or receiver.topics[alias]
            packet.topic = receiver.topics[alias]
        sent = next(expected)
        assert (packet.topic, packet.payload) == (sent.topic, sent.payload)
    assert receiver.hits > 10


@with_settings
async def test_after_a_reconnect_nothing_relies_on_an_alias_of_before(clients: Clients) -> None:
    fields = {
        "clean_start": False,
        "properties": Properties(topic_alias_maximum=4, session_expiry_interval=60),
    }
    first = await clients.connect("lasting", **fields)
    await first.subscribe("#", 1)
    publisher = await clients.connect("publisher")
    for number in range(3):
        await publisher.send(Publish(TOPICS[0], b"%d" % number, 1, packet_id=number + 1))
    received = [await first.receive() for _ in range(3)]  # none of them is acknowledged
    assert [packet.topic for packet in received if isinstance(packet, Publish)] == [
        TOPICS[0],
        "",
        "",
    ]
    second = await clients.open()
    await second.say_connect("lasting", **fields)
    *_, disconnect = await first.until_closed()
    assert isinstance(disconnect, Disconnect)
    assert disconnect.reason_code == ReasonCode.SESSION_TAKEN_OVER
    for _ in range(3):
        again = await second.receive()
        assert isinstance(again, Publish)
        assert (again.topic, again.dup) == (TOPICS[0], True)
        assert again.properties.topic_alias is None
    await publisher.send(Publish(TOPICS[0]))
    mapping = await second.receive()
    assert mapping == Publish(TOPICS[0], properties=Properties(topic_alias=1))


@switched_off
async def test_switched_off_there_are_none(clients: Clients) -> None:
    receiver = await subscriber(clients, 5)
    publisher = await clients.connect("publisher")
    assert publisher.connack.properties.topic_alias_maximum is None
    for _ in range(2):
        await publisher.send(Publish(TOPICS[0]))
        assert (await receiver.receive()).properties.topic_alias is None
    await publisher.send(Publish(TOPICS[0], properties=Properties(topic_alias=1)))
    (disconnect,) = await publisher.until_closed()
    assert isinstance(disconnect, Disconnect)
    assert disconnect.reason_code == ReasonCode.TOPIC_ALIAS_INVALID
