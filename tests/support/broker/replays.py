"""What tests of replays of retained messages say and look at."""

from collections.abc import Sequence

from gateway.mqtt.packets import Packet, PubAck, Publish
from tests.support.broker.broker_harness import Harness
from tests.support.broker.memory_client import MemoryClient
from tests.support.broker.subscribing import topics

TURN = 8
"""Messages that a turn of these tests has room for."""


def short_turns(harness: Harness) -> None:
    """Let its broker's turns have room for no more than that."""
    harness.broker.replays.turn_messages = TURN


def retain(harness: Harness, count: int, first: int = 0, qos: int = 0) -> list[str]:
    """Keep so many retained messages; return their topics."""
    names = [f"r/{number}" for number in range(first, first + count)]
    for name in names:
        harness.publish(name, name.encode(), qos, retain=True)
    return names


def turn(harness: Harness) -> None:
    """Let the broker do what it has left over for the next turn."""
    harness.pass_time(0.001)


def turns(harness: Harness) -> int:
    """Let it do everything; return how many turns that took."""
    count = 0
    while harness.broker.replays.count:
        turn(harness)
        count += 1
        assert count < 1_000
    return count


def acknowledged(client: MemoryClient) -> list[str]:
    """Acknowledge what comes at QoS 1 until nothing more does; return its topics."""
    found: list[str] = []
    while packets := client.take():
        found += topics(packets)
        client.send(*acknowledgements(packets))
        turn(client.harness)
    return found


def payloads_of(packets: Sequence[Packet], topic: str) -> list[bytes]:
    return [each.payload for each in packets if isinstance(each, Publish) and each.topic == topic]


def acknowledgements(packets: Sequence[Packet]) -> list[PubAck]:
    return [PubAck(each.packet_id) for each in packets if isinstance(each, Publish) and each.qos]
