"""Topic aliases on real connections: in from paho, out to clients that take them."""

import asyncio

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties as PahoProperties

from gateway.mqtt.packets import MQTT_5, PubAck, Publish
from gateway.mqtt.properties import NO_PROPERTIES, Properties
from tests.support.raw_client import Clients, RawClient

SYS = "$SYS/broker/tidegate/aliases/"
TOPICS = [f"site/floor-{number % 3}/device-{number}/temperature" for number in range(20)]

CONFIG = """
[broker]
sys_interval = 0.1
topic_alias_maximum = 4
topic_alias_maximum_out = 8
"""


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
