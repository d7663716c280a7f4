"""What an online session is owed is written where it does not acknowledge it, over sockets."""

import sqlite3

from gateway.mqtt.packets import PubAck, Publish
from gateway.mqtt.properties import Properties
from tests.support.processes.gateway_process import GatewayProcess
from tests.support.raw_client import Clients, RawClient

STAYS = Properties(session_expiry_interval=3600)

MESSAGES = 40


async def receive(client: RawClient) -> Publish:
    packet = await client.receive()
    assert isinstance(packet, Publish)
    return packet


def written(gateway: GatewayProcess) -> int:
    """Return how many messages are on disk, owed or not."""
    with sqlite3.connect(gateway.data / "tidegate.db") as connection:
        (count,) = connection.execute("SELECT count(*) FROM message").fetchone()
    connection.close()
    return int(count)


async def test_those_that_are_acknowledged_are_not_written_and_the_others_survive(
    gateway: GatewayProcess, clients: Clients
) -> None:
    subscriber = await clients.connect("s", clean_start=False, properties=STAYS)
    await subscriber.subscribe("t", 1)
    publisher = await clients.connect("p")
    for number in range(1, MESSAGES + 1):
        await publisher.send(Publish("t", b"%d" % number, 1, packet_id=number))
        message = await receive(subscriber)
        if number % 4:
            await subscriber.send(PubAck(message.packet_id))
        assert await publisher.receive() == PubAck(number)
    assert written(gateway) >= MESSAGES // 4
    gateway.kill()
    gateway.start()
    again = await clients.connect("s", clean_start=False, properties=STAYS)
    payloads = [(await receive(again)).payload for _ in range(MESSAGES // 4)]
    assert payloads == [b"%d" % number for number in range(4, MESSAGES + 1, 4)]
