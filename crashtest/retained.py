"""Looks at the retained messages of a gateway, and says which could be there."""

from collections.abc import Sequence

from crashtest.client import Client
from crashtest.numbers import Promise, Sent, name_in
from gateway.mqtt.packets import (
    Connect,
    PingReq,
    PingResp,
    PubAck,
    Publish,
    Subscribe,
    SubscriptionRequest,
)

NAME = "retained"
"""The publisher whose messages are retained, and so the second level of their topics."""

READER = "looks-at-retained"


async def read_retained(port: int) -> dict[str, int]:
    """Return the number of the retained message of each topic."""
    client = await Client.connect(port, Connect(READER))
    client.send(Subscribe(1, [SubscriptionRequest(f"crash/{NAME}/+", 1)]), PingReq())
    found = {}
    async for packet in client.packets():
        if isinstance(packet, Publish):
            found[packet.topic] = name_in(packet.payload)[1]
            client.send(PubAck(packet.packet_id))
        elif isinstance(packet, PingResp):
            break
    client.close()
    return found


def possible(sent: Sequence[Sent], topic: str) -> set[int | None]:
    """Return the numbers that may be retained now, None for nothing.

    That is the last acknowledged message of the topic, and each later one whose publisher does
    not know yet whether it was taken.
    """
    allowed: set[int | None] = set()
    for message in reversed(sent):
        if message.topic == topic and message.promise is not Promise.REFUSED:
            allowed.add(None if message.removes else message.number)
            if message.promise is Promise.ACKNOWLEDGED:
                return allowed
    return allowed | {None}


def check_retained(found: dict[str, int], sent: Sequence[Sent]) -> list[str]:
    """Return a sentence for each topic that has not what it must have."""
    findings = []
    for topic in sorted({message.topic for message in sent}):
        allowed = possible(sent, topic)
        if found.get(topic) not in allowed:
            wanted = " or ".join(sorted(str(number) for number in allowed))
            findings.append(f"retained on {topic}: {found.get(topic)} instead of {wanted}")
    return findings
