"""A broker with the channel `$share/jobs/t/#`, its consumers and what they get."""

from collections.abc import Iterator

from gateway.broker.channels.channel import Channel
from gateway.mqtt.packets import PubAck, Publish
from gateway.settings.broker import BrokerSettings
from gateway.settings.channel import ChannelSettings
from tests.support.broker.broker_harness import Harness
from tests.support.broker.durable_broker import DurableHarness
from tests.support.broker.memory_client import MemoryClient

SHARED = "$share/jobs/t/#"
TIMEOUT = 10.0


def settings(**fields: object) -> BrokerSettings:
    found = ChannelSettings("jobs", "t/#", **{"inflight_timeout": TIMEOUT, **fields})  # type: ignore[arg-type]  # by name
    return BrokerSettings(channels=(found,))


def durable(**fields: object) -> DurableHarness:
    return DurableHarness(settings(**fields))


def channel_of(harness: Harness, name: str = "jobs") -> Channel:
    (channel,) = harness.broker.channels.named(name)
    return channel


def publish(harness: Harness, payloads: str, topic: str = "t/a", qos: int = 1) -> None:
    for payload in payloads:
        harness.publish(topic, payload.encode(), qos)


def consumer(harness: Harness, name: str, qos: int = 1, **fields: object) -> MemoryClient:
    client = harness.connect(name, **fields)  # type: ignore[arg-type]  # by name
    client.subscribe(SHARED, qos)
    return client


def messages(client: MemoryClient) -> Iterator[Publish]:
    return (each for each in client.take() if isinstance(each, Publish))


def eight() -> list[Publish]:
    """Messages of one read, which are one span."""
    return [Publish("t/a", b"%d" % number, 1, packet_id=number + 1) for number in range(8)]


def got(client: MemoryClient, *, acknowledge: bool = True) -> str:
    """What came, which is acknowledged until nothing more comes."""
    found = ""
    while some := [*messages(client)]:
        found += "".join(each.payload.decode() for each in some)
        if not acknowledge:
            break
        for each in some:
            if each.qos:
                client.send(PubAck(each.packet_id))
    return found
