"""Mosquitto itself as the judge of random access rules."""

from collections.abc import AsyncIterator
from pathlib import Path
from random import Random

import pytest

from gateway.access.access import AccessPolicy
from gateway.access.acl_file import parse
from gateway.access.rule import READ, WRITE
from gateway.mqtt.packets import PubAck, Publish
from gateway.mqtt.reason_codes import ReasonCode
from tests.support.naive.acl import CLIENTS, USERS, Who, random_acl, random_topic
from tests.support.processes.mosquitto import Mosquitto
from tests.support.raw_client import Clients, RawClient

ROUNDS = 25
ROOT = "user root\ntopic readwrite #\ntopic readwrite $x/#\n"


@pytest.fixture
async def judge(tmp_path: Path) -> AsyncIterator["Judge"]:
    broker = Mosquitto(tmp_path, f"acl_file {tmp_path / 'acl'}\nmax_queued_messages 1000\n")
    judge = Judge(broker, tmp_path / "acl")
    yield judge
    broker.kill()


class Judge:
    def __init__(self, broker: Mosquitto, file: Path) -> None:
        self._broker = broker
        self._file = file

    async def rights(self, acl: str, who: Who, topics: list[str]) -> dict[str, int]:
        """Return what Mosquitto lets a client read and write under these rules."""
        self._file.write_text(acl + ROOT)
        self._broker.start()
        clients = Clients(self._broker.port)
        username = {} if who.username is None else {"username": who.username}
        client = await clients.connect(who.client_id, **username)
        root = await clients.connect("root", username="root")
        rights = {}
        for number, topic in enumerate(topics, start=1):
            written = await self._written(client, topic, number)
            rights[topic] = WRITE if written else 0
        for topic_filter in ("#", "$x/#"):
            await client.subscribe(topic_filter)
        for number, topic in enumerate(topics, start=1):
            assert await self._written(root, topic, number)
        for packet in await client.waiting():
            assert isinstance(packet, Publish)
            rights[packet.topic] |= READ
        await clients.close()
        self._broker.kill()
        return rights

    async def _written(self, client: RawClient, topic: str, number: int) -> bool:
        await client.send(Publish(topic, b"x", 1, packet_id=number))
        answer = await client.receive()
        assert isinstance(answer, PubAck), answer
        return answer.reason_code != ReasonCode.NOT_AUTHORIZED


@pytest.mark.mosquitto
async def test_random_rules_mean_what_they_mean_to_mosquitto(judge: Judge) -> None:
    random = Random(20261123)
    differences = []
    for _ in range(ROUNDS):
        acl = random_acl(random)
        policy = AccessPolicy(parse(acl + ROOT))
        who = Who(random.choice(USERS), random.choice(CLIENTS))
        topics = sorted({random_topic(random) for _ in range(15)})
        theirs = await judge.rights(acl, who, topics)
        access = policy.access(who.username, who.client_id, local=False, proven=True)
        for topic in topics:
            ours = access.rights(topic)
            if topic.startswith("$"):  # which no client of ours writes
                theirs[topic] &= READ
            if ours != theirs[topic]:
                differences.append((acl, who, topic, ours, theirs[topic]))
    assert not differences
