"""Queues of persistent sessions that are larger than what is kept of them in memory."""

from gateway.mqtt.packets import Packet, PubAck, Publish
from gateway.mqtt.reason_codes import ReasonCode
from tests.support.broker.durable_broker import DurableHarness
from tests.support.broker.memory_client import MemoryClient

HEAD = 4
MESSAGES = 30


def fill(harness: DurableHarness, messages: int = MESSAGES, **more: object) -> None:
    """Publish so many numbers, one by one."""
    for number in range(messages):
        code = harness.publish("t", b"%d" % number, 1, **more)
        assert code is ReasonCode.SUCCESS


def drain(client: MemoryClient) -> list[bytes]:
    """Return everything that comes while each message is acknowledged."""
    found: list[bytes] = []
    packets: list[Packet] = client.take()
    while packets:
        for packet in packets:
            if isinstance(packet, Publish):
                found.append(packet.payload)
                client.send(PubAck(packet.packet_id))
        packets = client.take()
    return found


def numbers(messages: int = MESSAGES, first: int = 0) -> list[bytes]:
    """Return the payloads of the first so many messages, without those before `first`."""
    return [b"%d" % number for number in range(first, messages)]
