"""What was acknowledged is there again after `kill -9`, and what must come once comes once."""

from pathlib import Path

from gateway.mqtt.packets import PubAck, Publish
from gateway.mqtt.properties import Properties
from tests.support.processes.gateway_process import GatewayProcess
from tests.support.raw_client import Clients, RawClient

STAYS = Properties(session_expiry_interval=3600)


def restart(gateway: GatewayProcess) -> None:
    gateway.kill()
    gateway.start()


async def stay(clients: Clients, client_id: str = "s") -> RawClient:
    """Return a client whose session outlives its connection."""
    return await clients.connect(client_id, clean_start=False, properties=STAYS)


async def publish(client: RawClient, topic: str, payload: bytes) -> None:
    """Publish and return once it is acknowledged."""
    await client.send(Publish(topic, payload, 1, packet_id=1))
    assert (await client.take(PubAck)).reason_code < 0x80


async def test_packet_identifiers_survive_an_orderly_stop(
    gateway: GatewayProcess, clients: Clients
) -> None:
    subscriber = await stay(clients)
    await subscriber.subscribe("t", 1)
    publisher = await clients.connect("p")
    await publish(publisher, "t", b"0")
    await publish(publisher, "t", b"1")
    await subscriber.send(PubAck((await subscriber.take(Publish)).packet_id))
    second = await subscriber.take(Publish)
    assert gateway.stop() == 0
    gateway.start()
    subscriber = await stay(clients)
    again = await subscriber.take(Publish)
    assert (again.payload, again.packet_id, again.dup) == (b"1", second.packet_id, True)
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
        assert (await client.take(Publish)).payload == b"memory"
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
    first = await subscriber.take(Publish)
    await subscriber.send(PubAck(first.packet_id))
    await publish(publisher, "t", b"2")
    await publish(publisher, "t", b"3")
    gateway.stop()
    gateway.start()
    again = await stay(clients)
    assert (await again.take(Publish)).payload == b"3"
