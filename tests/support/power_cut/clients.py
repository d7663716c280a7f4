"""Clients that have a gateway promise all that it can, and that look after it when it is back."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import suppress
from random import Random

from crashtest.client import Client
from crashtest.numbers import name_in, payload_of
from gateway.mqtt.packets import (
    Connect,
    Packet,
    PingReq,
    PingResp,
    PubAck,
    PubComp,
    Publish,
    PubRec,
    PubRel,
    Subscribe,
    SubscriptionRequest,
    Will,
)
from gateway.mqtt.properties import Properties
from tests.support.disk.promises import Number, Unfinished

EXPIRY = 7_200
"""Seconds: of each session and message, so that nothing expires meanwhile and all has a time."""

BRIEF = 1
"""Seconds: of messages that nobody may get any more when the gateway is back."""

CHANNEL = "$share/jobs/crash/#"

MESSAGES = 20
"""Messages of each publisher in each life."""

SOON = 3.0
"""Seconds in which a channel gives out all that it has."""

PADDING = (0, 200, 1_000, 6_000)


async def session(port: int, name: str, will: Will | None = None) -> Client:
    """Return a client whose session outlives it."""
    properties = Properties(session_expiry_interval=EXPIRY)
    packet = Connect(name, clean_start=False, will=will, properties=properties)
    return await Client.connect(port, packet)


async def live(port: int, random: Random, life: int) -> None:
    """Do everything once: sessions, shared ones, wills, QoS 1 and 2, retained messages."""
    if not life:
        for name, topic_filter in [
            ("away", "crash/#"),
            ("m1", "$share/g/crash/#"),
            ("m2", "$share/g/crash/#"),
            ("online", "crash/#"),
        ]:
            client = await session(port, name)
            await ask(client, Subscribe(1, [SubscriptionRequest(topic_filter, 2)]))
            client.close()
    later = Properties(will_delay_interval=EXPIRY)
    willer = await session(port, "willer", Will("crash/later", b"", 1, properties=later))
    quick = await session(port, "quick", Will("crash/wills", payload_of("quick", life + 1, 0), 2))
    online = await session(port, "online")
    reading = asyncio.create_task(listen(online))
    first = 1 + life * MESSAGES
    await asyncio.gather(
        publish(port, "p1", 1, random, first),
        publish(port, "p2", 2, random, first),
        publish(port, "kept", 1, random, first, retain=True),
        publish(port, "late", 1, random, first, prefix="$delay/1/"),
        publish(port, "brief", 1, random, first, expiry=BRIEF),
        work_a_little(port),
        leave(willer),
        leave(quick),
    )
    online.abort()
    reading.cancel()


async def leave(client: Client) -> None:
    """Lose the connection: its will becomes due."""
    client.abort()


async def ask(client: Client, request: Packet) -> Packet:
    """Send a request and return what is answered."""
    client.send(request)
    return await anext(client.packets())


async def publish(
    port: int,
    name: str,
    qos: int,
    random: Random,
    first: int,
    *,
    retain: bool = False,
    prefix: str = "",
    expiry: int = EXPIRY,
) -> None:
    """Publish numbers, each once the one before is acknowledged."""
    client = await session(port, name)
    packets = client.packets()
    for number in range(first, first + MESSAGES):
        payload = payload_of(name, number, random.choice(PADDING))
        if retain and random.random() < 0.2:
            payload = b""
        topic = f"{prefix}crash/{name}/{number % 3}"
        properties = Properties(message_expiry_interval=expiry)
        packet = Publish(topic, payload, qos, retain, packet_id=number, properties=properties)
        client.send(packet)
        while not isinstance(answer := await anext(packets), PubAck | PubComp):
            if isinstance(answer, PubRec):
                client.send(PubRel(answer.packet_id))
    client.close()


async def listen(client: Client) -> None:
    """Acknowledge what comes, all the way."""
    async for _ in messages(client):
        pass


async def messages(client: Client) -> AsyncIterator[Packet]:
    """Yield what comes once it is acknowledged."""
    async for packet in client.packets():
        if isinstance(packet, Publish) and packet.qos:
            answer = PubAck if packet.qos == 1 else PubRec
            client.send(answer(packet.packet_id))
        elif isinstance(packet, PubRel):
            client.send(PubComp(packet.packet_id))
        yield packet


async def finish(port: int, name: str, waiting: dict[int, Unfinished]) -> None:
    """End what the client had begun at QoS 2, as a client does that is back [MQTT-4.4.0-1]."""
    client = await session(port, name)
    packets = client.packets()
    for packet_id, each in waiting.items():
        if not each.received:
            each.packet.dup = client.session_present
            client.send(each.packet)
            while not isinstance(await anext(packets), PubRec):
                pass
        client.send(PubRel(packet_id))
        while not isinstance(await anext(packets), PubComp):
            pass
    client.close()


async def collect(port: int, name: str, findings: list[str]) -> Counter[Number]:
    """Return what the session is owed, until a PINGREQ is answered by nothing else."""
    client = await session(port, name)
    found: Counter[Number] = Counter()
    news = True
    coming = messages(client)
    while news:
        news = False
        client.send(PingReq())
        while not isinstance(packet := await anext(coming), PingResp):
            news = True
            if isinstance(packet, Publish) and packet.payload:
                try:
                    found[name_in(packet.payload)] += 1
                except ValueError as error:  # what a disk that lies has torn
                    findings.append(f"{name} got something else: {error}")
                left = packet.properties.message_expiry_interval
                begun = packet.dup  # delivery that had begun goes on [MQTT-3.3.2-5]
                if not begun and left is not None and not EXPIRY - 600 < left <= EXPIRY:
                    findings.append(f"{name} got a message with {left} s left")
    client.close()
    return found


async def work_a_little(port: int) -> None:
    """Consume some messages of the channel, and lose the connection."""
    client = await session(port, "worker")
    client.send(Subscribe(1, [SubscriptionRequest(CHANNEL, 1)]))
    left = MESSAGES
    async for packet in messages(client):
        left -= isinstance(packet, Publish)
        if not left:
            break
    client.abort()


async def work(port: int, wanted: set[Number]) -> set[Number]:
    """Consume the channel, and return what of this did not come."""
    client = await session(port, "newcomer")
    client.send(Subscribe(1, [SubscriptionRequest(CHANNEL, 1)]))
    missing = set(wanted)
    with suppress(TimeoutError):
        async with asyncio.timeout(SOON):
            coming = messages(client)
            while missing and (packet := await anext(coming)):
                if isinstance(packet, Publish) and packet.payload:
                    missing.discard(name_in(packet.payload))
    client.close()
    return missing
