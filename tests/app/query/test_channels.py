"""Messages of channels are shown and moved, and dead letters go back to where they came from."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.mqtt.packets import PubAck, Publish
from gateway.mqtt.properties import Properties
from gateway.mqtt.reason_codes import ReasonCode
from tests.support.disk.storage import until
from tests.support.gateway_here import Gateway, started
from tests.support.operator import Operator
from tests.support.ports import free_port
from tests.support.raw_client import Clients, RawClient

CONFIG = """
[[listener]]
port = {port}
[[channel]]
name = "jobs"
filter = "work/#"
max_attempts = 1
dead_letter_topic = "dead/jobs"
memory_messages = 20
[[channel]]
name = "dead"
filter = "dead/#"
[[channel]]
name = "small"
filter = "small"
maximum_messages = 3
"""
MANY = 50


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[Gateway]:
    """Give a gateway with channels."""
    async with started(tmp_path, CONFIG.format(port=free_port())) as made:
        yield made


async def publish(client: RawClient, topic: str, *payloads: bytes) -> None:
    said = Properties(user_properties=(("of", "me"),))
    for number, payload in enumerate(payloads, 1):
        await client.send(Publish(topic, payload, 1, packet_id=number, properties=said))
        answer = await client.receive()
        assert isinstance(answer, PubAck)
        assert answer.reason_code < 0x80


async def payloads(operator: Operator, channel: str) -> list[str]:
    answer = await operator.ask("channel/peek", channel=channel)
    return [row["payload"] for row in answer["rows"]]


async def test_what_waits_is_shown_and_stays(
    gateway: Gateway, operator: Operator, clients: Clients
) -> None:
    publisher = await clients.connect("p")
    await publish(publisher, "work/1", b"1", b"2", b"\xff")
    for _ in range(2):
        answer = await operator.ask("channel/peek", channel="jobs", limit=2)
        assert (answer["total"], answer["next"]) == (3, 2)
        first, second = answer["rows"]
        assert (first["payload"], first["topic"], first["attempts"]) == ("1", "work/1", 0)
        assert (first["client"], first["properties"]) == ("p", [["of", "me"]])
        assert int(second["id"], 16) == int(first["id"], 16) + 1 or second["id"] > first["id"]
    answer = await operator.ask("channel/peek", channel="jobs", offset=2)
    assert [row["payload_base64"] for row in answer["rows"]] == ["/w=="]
    worker = await clients.connect("w", properties=Properties(receive_maximum=2))
    await worker.subscribe("$queue/jobs", 1)
    await until(lambda: gateway.broker.channels.named("jobs")[0].in_flight == 2)
    answer = await operator.ask("channel/consumers", channel="jobs")
    assert answer["rows"] == [
        {
            "client": "w",
            "connected": True,
            "filter": "$share/jobs/work/#",
            "in_flight": 2,
            "late": 0,
            "used": 2,
            "limit": 2,
        }
    ]
    assert await operator.refused("channel/peek", channel="job") == (
        "channel: there is no channel 'job'"
    )


async def test_messages_move_also_those_on_disk_until_the_other_is_full(
    operator: Operator, clients: Clients
) -> None:
    publisher = await clients.connect("p")
    numbers = [b"%d" % each for each in range(MANY)]
    await publish(publisher, "work/1", *numbers)
    answer = await operator.ask("channel/move", channel="jobs", to="small")
    assert (answer["moved"], answer["left"]) == (3, MANY - 3)
    assert await payloads(operator, "small") == ["0", "1", "2"]
    answer = await operator.ask("channel/move", channel="jobs", to="dead", count=10)
    assert (answer["moved"], answer["left"]) == (10, MANY - 13)
    answer = await operator.ask("channel/move", channel="jobs", to="dead")
    assert (answer["moved"], answer["left"]) == (MANY - 13, 0)
    found = await payloads(operator, "dead")
    assert [int(each) for each in found] == [*range(3, 3 + len(found))]
    assert await operator.refused("channel/move", channel="jobs", to="jobs") == (
        "channel and to are the same channel"
    )


async def test_dead_letters_go_back_with_what_they_had(
    gateway: Gateway, operator: Operator, clients: Clients
) -> None:
    watcher = await clients.connect("watcher")
    await watcher.subscribe("work/#", 0)
    publisher = await clients.connect("p")
    await publish(publisher, "dead/other", b"no letter")
    worker = await clients.connect("w")
    await worker.subscribe("$queue/jobs", 1)
    await publish(publisher, "work/1", b"1", b"2")
    for _ in range(2):
        job = await worker.receive()
        assert isinstance(job, Publish)
        await worker.send(PubAck(job.packet_id, ReasonCode.UNSPECIFIED_ERROR))
    await until(lambda: gateway.broker.channels.named("dead")[0].depth == 3)
    answer = await operator.ask("channel/redrive", channel="dead")
    assert (answer["moved"], answer["left"]) == (2, 1)
    assert await payloads(operator, "dead") == ["no letter"]
    again = [await worker.receive() for _ in range(2)]
    for job, payload in zip(again, (b"1", b"2"), strict=True):
        assert isinstance(job, Publish)
        assert (job.topic, job.payload) == ("work/1", payload)
        said = job.properties.user_properties
        assert (said[0], said[-1]) == (("of", "me"), ("attempt", "1"))
        assert len(said) == 4
    seen = [await watcher.receive() for _ in range(2)]
    assert len(seen) == 2  # and not again
    assert await watcher.waiting() == []
