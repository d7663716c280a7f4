"""What was acknowledged is there again after `kill -9`, and what must come once comes once."""

from pathlib import Path
from typing import TypeVar

from gateway.mqtt.packets import (
    Packet,
    PubAck,
    PubComp,
    Publish,
    PubRec,
    PubRel,
    UnsubAck,
    Unsubscribe,
)
from gateway.mqtt.properties import Properties
from tests.support.processes.gateway_process import GatewayProcess
from tests.support.raw_client import Clients, RawClient

P = TypeVar("P", bound=Packet)

STAYS = Properties(session_expiry_interval=3600)


def restart(gateway: GatewayProcess) -> None:
    gateway.kill()
    gateway.start()


async def stay(clients: Clients, client_id: str = "s") -> RawClient:
    """Return a client whose session outlives its connection."""
    return await clients.connect(client_id, clean_start=False, properties=STAYS)


async def take(client: RawClient, kind: type[P]) -> P:
    packet = await client.receive()
    assert isinstance(packet, kind), packet
    return packet


async def publish(
    client: RawClient, topic: str, payload: bytes, qos: int = 1, **more: object
) -> None:
    """Publish and return once it is acknowledged, in full."""
    await client.send(Publish(topic, payload, qos, packet_id=1 if qos else 0, **more))  # type: ignore[arg-type]  # by name
    if qos == 2:
        assert (await take(client, PubRec)).reason_code < 0x80
        await client.send(PubRel(1))
        await take(client, PubComp)
    elif qos:
        assert (await take(client, PubAck)).reason_code < 0x80


async def test_a_qos_2_message_that_was_taken_is_not_taken_again(
    gateway: GatewayProcess, clients: Clients
) -> None:
    subscriber = await stay(clients)
    await subscriber.subscribe("t", 2)
    await subscriber.close()
    publisher = await stay(clients, "p")
    message = Publish("t", b"once", 2, packet_id=7)
    await publisher.send(message)
    assert await take(publisher, PubRec) == PubRec(7)
    restart(gateway)
    publisher = await stay(clients, "p")
    assert publisher.connack.session_present
    message.dup = True
    await publisher.send(message)
    assert await take(publisher, PubRec) == PubRec(7)
    await publisher.send(PubRel(7))
    assert await take(publisher, PubComp) == PubComp(7)
    restart(gateway)
    publisher = await stay(clients, "p")
    await publisher.send(Publish("t", b"next", 2, packet_id=7))  # the identifier is free again
    await take(publisher, PubRec)
    restart(gateway)
    subscriber = await stay(clients)
    assert [(await take(subscriber, Publish)).payload for _ in range(2)] == [b"once", b"next"]
    assert await subscriber.waiting() == []


async def test_a_qos_2_message_goes_on_where_it_was(
    gateway: GatewayProcess, clients: Clients
) -> None:
    subscriber = await stay(clients)
    await subscriber.subscribe("t", 2)
    await publish(await clients.connect("p"), "t", b"once", 2)
    first = await take(subscriber, Publish)
    assert not first.dup
    restart(gateway)
    subscriber = await stay(clients)
    again = await take(subscriber, Publish)
    assert (again.payload, again.packet_id, again.dup) == (b"once", first.packet_id, True)
    await subscriber.send(PubRec(again.packet_id))
    assert await take(subscriber, PubRel) == PubRel(first.packet_id)
    restart(gateway)
    subscriber = await stay(clients)
    assert await take(subscriber, PubRel) == PubRel(first.packet_id)
    await subscriber.send(PubComp(first.packet_id))
    assert await subscriber.waiting() == []


async def test_packet_identifiers_survive_an_orderly_stop(
    gateway: GatewayProcess, clients: Clients
) -> None:
    subscriber = await stay(clients)
    await subscriber.subscribe("t", 1)
    publisher = await clients.connect("p")
    await publish(publisher, "t", b"0")
    await publish(publisher, "t", b"1")
    await subscriber.send(PubAck((await take(subscriber, Publish)).packet_id))
    second = await take(subscriber, Publish)
    assert gateway.stop() == 0
    gateway.start()
    subscriber = await stay(clients)
    again = await take(subscriber, Publish)
    assert (again.payload, again.packet_id, again.dup) == (b"1", second.packet_id, True)
    assert await subscriber.waiting() == []


async def test_subscriptions_keep_their_options_and_filters(
    gateway: GatewayProcess, clients: Clients
) -> None:
    subscriber = await stay(clients)
    where = Properties(user_properties=(("$where", "value > 20"),), subscription_identifiers=(9,))
    await subscriber.subscribe("filtered", 1, where, retain_as_published=True)
    await subscriber.subscribe("$share/g/shared", 1)
    await subscriber.subscribe("own", 1, no_local=True)
    await subscriber.subscribe("given/up", 1)
    await subscriber.send(Unsubscribe(5, ["given/up"]))
    await take(subscriber, UnsubAck)
    restart(gateway)
    subscriber = await stay(clients)
    publisher = await clients.connect("p")
    await publish(publisher, "filtered", b'{"value":20}')
    await publish(publisher, "filtered", b'{"value":21}', retain=True)
    await publish(publisher, "given/up", b"x")
    await publish(publisher, "shared", b"y")
    filtered = await take(subscriber, Publish)
    assert (filtered.payload, filtered.retain) == (b'{"value":21}', True)
    assert filtered.properties.subscription_identifiers == (9,)
    assert (await take(subscriber, Publish)).payload == b"y"
    await subscriber.send(Publish("own", b"z"))
    assert await subscriber.waiting() == []


async def test_nothing_is_kept_without_durability(tmp_path: Path) -> None:
    gateway = GatewayProcess(tmp_path, None, "--durability", "memory").start()
    try:
        clients = Clients(gateway.port)
        await (await stay(clients)).subscribe("t", 1)
        restart(gateway)
        client = await stay(clients)
        assert not client.connack.session_present
        await client.subscribe("$SYS/broker/tidegate/storage/durability")
        assert (await take(client, Publish)).payload == b"memory"
        await clients.close()
    finally:
        gateway.kill()


async def test_a_stop_hands_the_newest_message_to_a_conflated_session(
    gateway: GatewayProcess, clients: Clients
) -> None:
    every = Properties(user_properties=(("$every", "3600000"),))
    subscriber = await stay(clients)
    await subscriber.subscribe("t", 1, every)
    publisher = await clients.connect("p")
    await publish(publisher, "t", b"1")
    first = await take(subscriber, Publish)
    await subscriber.send(PubAck(first.packet_id))
    await publish(publisher, "t", b"2")
    await publish(publisher, "t", b"3")
    gateway.stop()
    gateway.start()
    again = await stay(clients)
    assert (await take(again, Publish)).payload == b"3"
