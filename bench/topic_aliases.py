"""How many bytes do topic aliases save on the wire, in and out?

    .venv/bin/python -m bench.topic_aliases [MESSAGES]

Starts a gateway, publishes the mixes of bench/topic_mixes.py over real sockets and counts every
byte behind CONNACK and SUBACK. Each subscriber resolves the aliases it gets and stops the run if
a message comes under a wrong topic. The publisher chooses its aliases as the gateway does.
"""

import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from bench.topic_mixes import MIXES
from gateway.mqtt.aliases.outbound_aliases import OutboundAliases
from gateway.mqtt.aliases.topic_aliases import AliasBudget
from gateway.mqtt.packets import Publish
from gateway.mqtt.properties import NO_PROPERTIES, Properties
from gateway.mqtt.publish_encoder import encode, encode_with_alias, make_publication
from tests.support.processes.gateway_process import GatewayProcess
from tests.support.raw_client import Clients, RawClient

MESSAGES = 10_000
MAXIMA = (0, 10, 16, 64, 128)
CHUNK = 250
"""Messages that are on their way at one time: no subscriber is too slow, nothing is dropped."""

QOS_0 = 0x30
"""The first byte of these PUBLISH packets."""

PAYLOAD = b'{"value":21.5,"unit":"\xc2\xb0C","time":%013d}'
CONFIG = "[broker]\ntopic_alias_maximum = 128\n"


class Subscriber:
    """Takes so many aliases, at least 0."""

    def __init__(self, client: RawClient) -> None:
        self._client = client
        self._topics: dict[int, str] = {}
        self._begun = len(client.raw)

    @property
    def bytes(self) -> int:
        """The bytes that came since it was made."""
        return len(self._client.raw) - self._begun

    async def expect(self, topics: list[str]) -> None:
        """Receive one message on each topic, in this order."""
        for topic in topics:
            publish = await self._client.receive()
            if not isinstance(publish, Publish) or self._topic(publish) != topic:
                raise SystemExit(f"expected a message on {topic}, received {publish}")

    def _topic(self, publish: Publish) -> str:
        alias = publish.properties.topic_alias
        if alias is None:
            return publish.topic
        if publish.topic:
            self._topics[alias] = publish.topic
        return self._topics[alias]


@asynccontextmanager
async def subscribers(clients: Clients) -> AsyncIterator[list[Subscriber]]:
    """Give one subscriber of everything for each of MAXIMA."""
    connected = []
    for maximum in MAXIMA:
        properties = Properties(topic_alias_maximum=maximum) if maximum else NO_PROPERTIES
        client = await clients.connect(f"takes {maximum}", properties=properties)
        await client.subscribe("#")
        connected.append(client)
    yield [Subscriber(client) for client in connected]
    for client in connected:
        await client.close()


async def out(clients: Clients, topics: list[str]) -> list[float]:
    """Return the bytes for each message to clients that take MAXIMA aliases."""
    publisher = await clients.connect("publisher")
    async with subscribers(clients) as receivers:
        for first in range(0, len(topics), CHUNK):
            chunk = topics[first : first + CHUNK]
            await publisher.send(*(Publish(topic, PAYLOAD % first) for topic in chunk))
            await asyncio.gather(*(receiver.expect(chunk) for receiver in receivers))
        return [receiver.bytes / len(topics) for receiver in receivers]


async def into(clients: Clients, topics: list[str]) -> list[float]:
    """Return the bytes for each message from clients that use MAXIMA aliases."""
    sizes = []
    for maximum in MAXIMA:
        publisher = await clients.connect("publisher")
        watcher = await clients.connect("watcher")
        await watcher.subscribe("#")
        receiver = Subscriber(watcher)
        limit = min(maximum, publisher.connack.properties.topic_alias_maximum or 0)
        aliases = OutboundAliases(limit, AliasBudget()) if limit else None
        sent = 0
        for first in range(0, len(topics), CHUNK):
            chunk = topics[first : first + CHUNK]
            data = b"".join(_publish(topic, PAYLOAD % first, aliases) for topic in chunk)
            sent += len(data)
            await publisher.send_bytes(data)
            await receiver.expect(chunk)
        sizes.append(sent / len(topics))
    return sizes


def _publish(topic: str, payload: bytes, aliases: OutboundAliases | None) -> bytes:
    publication = make_publication(topic, payload, 0, retain=False)
    if aliases is None:
        return encode(publication, QOS_0, mqtt5=True, subscription_identifiers=(), now=0.0).data
    return encode_with_alias(publication, 0, QOS_0, (), 0.0, aliases, 1 << 30).data


async def figures(clients: Clients, direction: str) -> str:
    """Return what the gateway says of its aliases in one direction."""
    client = await clients.connect("figures")
    await asyncio.sleep(2.5)  # the gateway says them each second
    await client.subscribe(f"$SYS/broker/tidegate/aliases/{direction}/#")
    sent = [packet for packet in await client.waiting() if isinstance(packet, Publish)]
    return ", ".join(f"{each.topic.rpartition('/')[2]} {each.payload.decode()}" for each in sent)


def row(name: str, sizes: list[float]) -> str:
    cells = [f"{sizes[0]:.1f}"]
    cells += [f"{size:.1f} ({100 * (size / sizes[0] - 1):+.0f} %)" for size in sizes[1:]]
    return f"| {name} | {' | '.join(cells)} |"


async def main(messages: int) -> None:
    heading = " | ".join(f"{maximum} aliases" if maximum else "none" for maximum in MAXIMA)
    with tempfile.TemporaryDirectory() as folder:
        gateway = GatewayProcess(Path(folder), CONFIG).start()
        clients = Clients(gateway.port)
        for direction, measure in (("out", out), ("in", into)):
            print(f"\nBytes for each PUBLISH, {direction}:\n")
            print(f"| {messages} messages | {heading} |")
            print(f"| --- | {' | '.join('--:' for _ in MAXIMA)} |")
            for name, mix in MIXES.items():
                print(row(name, await measure(clients, mix(messages))), flush=True)
            print(f"\n{await figures(clients, direction)}")
        await clients.close()
        gateway.stop()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else MESSAGES))
