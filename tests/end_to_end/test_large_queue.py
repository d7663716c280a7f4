"""A queue of an absent client that is many times what the gateway keeps of it in memory."""

from gateway.mqtt.packets import PubAck, Publish
from gateway.mqtt.properties import Properties
from tests.support.processes.gateway_process import GatewayProcess
from tests.support.raw_client import Clients, RawClient

MESSAGES = 100_000
PAYLOAD = 200
WINDOW = 2_000
"""Messages that the publisher has on their way."""

MEMORY = 12 * 1024
"""KiB by which the process may grow; the payloads alone are 20 MB."""

STAYS = Properties(session_expiry_interval=3600)


async def publish_all(client: RawClient) -> None:
    """Publish the numbers from 0, and return once the last is acknowledged."""
    sent = 0
    for acknowledged in range(MESSAGES):
        if sent - acknowledged <= WINDOW // 2:
            last = min(MESSAGES, acknowledged + WINDOW)
            batch = range(sent, last)
            payloads = [str(number).encode().ljust(PAYLOAD) for number in batch]
            numbered = zip(batch, payloads, strict=True)
            await client.send(
                *(Publish("t", text, 1, packet_id=number % 60_000 + 1) for number, text in numbered)
            )
            sent = last
        packet = await client.take(PubAck)
        assert packet.reason_code < 0x80


async def drain(client: RawClient, expected: int) -> None:
    """Take this many messages, which must be the numbers from 0, and acknowledge them."""
    answers: list[PubAck] = []
    for number in range(expected):
        packet = await client.take(Publish)
        assert (int(packet.payload), packet.dup) == (number, False)
        answers.append(PubAck(packet.packet_id))
        if len(answers) == 50 or number == expected - 1:
            await client.send(*answers)
            answers = []


async def test_it_is_on_disk_and_comes_in_order_after_a_kill(
    gateway: GatewayProcess, clients: Clients
) -> None:
    """Nothing that was acknowledged is lost, and memory is bounded before and after."""
    absent = await clients.connect("s", clean_start=False, properties=STAYS)
    await absent.subscribe("t", 1)
    await absent.close()
    before = gateway.memory()
    await publish_all(await clients.connect("p"))
    assert gateway.memory() - before < MEMORY
    gateway.kill()
    gateway.start()
    assert gateway.memory() - before < MEMORY
    absent = await clients.connect("s", clean_start=False, properties=STAYS)
    assert absent.connack.session_present
    await drain(absent, MESSAGES)
    assert gateway.memory() - before < MEMORY
