"""The last value of each topic, what fell silent, and who gets a topic's messages."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from gateway.config.load import load
from gateway.mqtt.packets import PubAck, Publish
from gateway.mqtt.properties import Properties
from tests.support.clocks import ManualClock
from tests.support.gateway_here import Gateway
from tests.support.operator import Operator
from tests.support.ports import free_port
from tests.support.raw_client import Clients, RawClient

CONFIG = "[[listener]]\nport = {port}\n[broker]\nremembered_topics = {most}\n"


class On:
    """A gateway that remembers topics, with a clock that the test moves."""

    def __init__(self, gateway: Gateway, operator: Operator, publisher: RawClient) -> None:
        self.gateway, self.operator, self._publisher = gateway, operator, publisher

    async def publish(self, *messages: tuple[str, bytes], retain: bool = False) -> None:
        """Publish in one write, so that the gateway may take them together."""
        packets = [
            Publish(topic, payload, 1, retain, packet_id=number)
            for number, (topic, payload) in enumerate(messages, 1)
        ]
        await self._publisher.send(*packets)
        for _ in packets:
            assert isinstance(await self._publisher.receive(), PubAck)

    def step(self, seconds: float) -> None:
        clock = self.gateway.clock
        assert isinstance(clock, ManualClock)
        clock.step(seconds)


@pytest.fixture
def most() -> int:
    return 100


@pytest.fixture
async def on(tmp_path: Path, most: int) -> AsyncIterator[On]:
    port = free_port()
    file = tmp_path / "gateway.toml"
    file.write_text(CONFIG.format(port=port, most=most), "utf-8")
    async with AsyncExitStack() as stack:
        gateway = Gateway(load(file), tmp_path / "data", stack)
        gateway.clock = ManualClock()
        await gateway.start()
        clients = Clients(port)
        operator = await Operator.open(port)
        yield On(gateway, operator, await clients.connect("p"))
        await operator.close()
        await clients.close()


async def test_topics_have_their_last_value_and_usual_interval(on: On) -> None:
    for number in range(4):
        await on.publish(("a/fast", b'{"value":%d}' % number), ("a/slow", b"x" * 300))
        await on.operator.ask("topics")
        on.step(2)
    answer = await on.operator.ask("topics")
    fast, slow = answer["rows"]
    assert (fast["topic"], fast["payload"], fast["count"]) == ("a/fast", '{"value":3}', 4)
    assert (fast["interval_seconds"], fast["rate"], fast["silent"]) == (2.0, 0.5, False)
    assert (fast["publisher"], fast["qos"], fast["retained"]) == ("p", 1, False)
    assert fast["time"] == answer["time"] - 2_000
    assert (slow["size"], len(slow["payload"]), slow["bytes"]) == (300, 256, 1_200)
    on.step(10)
    assert [row["topic"] for row in (await on.operator.ask("topics", state="silent"))["rows"]] == [
        "a/fast",
        "a/slow",
    ]
    await on.publish(("a/fast", b"back"))
    (silent,) = (await on.operator.ask("topics", state="silent"))["rows"]
    assert (silent["topic"], silent["rate"], silent["silent_seconds"]) == ("a/slow", 0, 12)


async def test_a_burst_is_counted_whole_and_looked_at_once(on: On) -> None:
    await on.publish(*[("burst", b"%d" % number) for number in range(50)], ("other", b"1"))
    rows = (await on.operator.ask("topics", sort="count"))["rows"]
    assert [(row["topic"], row["count"], row["payload"]) for row in rows] == [
        ("burst", 50, "49"),
        ("other", 1, "1"),
    ]
    assert rows[0]["bytes"] == sum(len(str(number)) for number in range(50))


async def test_topics_are_found_by_filter_and_in_order(on: On) -> None:
    await on.publish(("a/1", b"1"), ("a/2", b"22"), ("b", b"333"))
    for request, found in (
        ({"match": "a/#"}, ["a/1", "a/2"]),
        ({"sort": "bytes"}, ["b", "a/2", "a/1"]),
        ({"sort": "rate"}, ["a/1", "a/2", "b"]),
        ({"sort": "silent_seconds"}, ["a/1", "a/2", "b"]),
        ({"offset": 1, "limit": 1}, ["a/2"]),
    ):
        rows = (await on.operator.ask("topics", **request))["rows"]
        assert [row["topic"] for row in rows] == found, request
    assert "match 'a/#/b'" in await on.operator.refused("topics", match="a/#/b")


async def test_payloads_are_text_or_base64(on: On) -> None:
    await on.publish(
        ("1", b"\xff\x00"), ("2", "é".encode() * 200), ("3", ("x" + "é" * 200).encode())
    )
    binary, even, cut = (await on.operator.ask("topics"))["rows"]
    assert (binary["payload_base64"], binary["size"]) == ("/wA=", 2)
    assert even["payload"] == "é" * 128
    assert cut["payload"] == "x" + "é" * 127


@pytest.mark.parametrize("most", [3])
async def test_the_topics_without_a_message_for_longest_are_forgotten(on: On) -> None:
    for topic in ("a", "b", "c", "a", "d"):
        on.step(1)
        await on.publish((topic, b"1"))
    await on.publish(("x" * 2_000, b"1"))
    rows = (await on.operator.ask("topics"))["rows"]
    assert [row["topic"] for row in rows] == ["a", "c", "d"]
    assert on.gateway.counters.count("tidegate/topics/forgotten") == 1


async def test_a_topic_says_who_gets_it_and_what_is_retained(on: On) -> None:
    where = Properties(user_properties=(("$where", "payload.value > 1"),))
    clients = Clients(on.gateway.configuration.listeners[0].port)
    plain = await clients.connect("plain")
    await plain.subscribe("a/+")
    picky = await clients.connect("picky")
    await picky.subscribe("a/b", 1, where)
    await on.publish(("a/b", b"kept"), retain=True)
    answer = await on.operator.ask("topic", topic="a/b")
    assert (answer["receivers"], answer["filtered"]) == (["plain"], ["picky"])
    assert answer["topic"]["retained"] is True
    assert answer["retained"] == {"payload": "kept", "size": 4}
    nothing = await on.operator.ask("topic", topic="nothing")
    assert (nothing["topic"], nothing["receivers"], nothing["retained"]) == (None, [], None)
    assert "is no topic name" in await on.operator.refused("topic", topic="a/#")
    await clients.close()


async def test_off_it_says_so_and_costs_nothing(gateway: Gateway, operator: Operator) -> None:
    assert gateway.broker.watch is None
    assert "remembered_topics is 0" in await operator.refused("topics")
    assert (await operator.ask("topic", topic="a"))["remembered"] is False


async def test_an_answer_has_only_as_many_receivers_as_it_has_room_for(
    gateway: Gateway, operator: Operator, clients: Clients
) -> None:
    for number in range(20):
        client = await clients.connect(f"{number}" + "x" * 2_000)
        await client.subscribe("crowded")
    answer = await operator.ask("topic", topic="crowded")
    assert len(answer["receivers"]) == 8
