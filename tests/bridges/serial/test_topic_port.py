"""A line of two topics: bounded, and gone with its port."""

import asyncio

import pytest

from gateway.bridges.serial.remote_port import WAITING_MAX, TopicPort
from gateway.bridges.serial.serial_settings import port
from gateway.mqtt.reason_codes import ReasonCode
from tests.support.clocks import ManualClock
from tests.support.nodes.bridges import Gateway


@pytest.fixture
def gateway() -> Gateway:
    return Gateway.make(ManualClock())


def open_line(gateway: Gateway) -> TopicPort:
    return TopicPort("topic://nodes/n1", gateway.host("serial", "nodes_n1"))


async def test_what_is_published_is_read_in_one_piece(gateway: Gateway) -> None:
    line = open_line(gateway)
    for payload in (b"", b"abc", b"def"):
        assert gateway.subscriptions.publish("nodes/n1/up", payload) == [ReasonCode.SUCCESS]
    assert await line.read() == b"abcdef"
    reading = asyncio.ensure_future(line.read())
    await asyncio.sleep(0)
    assert not reading.done()
    gateway.subscriptions.publish("nodes/n1/up", b"g")
    assert await reading == b"g"
    line.close()
    assert gateway.subscriptions.publish("nodes/n1/up", b"h") == []


async def test_a_line_that_is_full_refuses(gateway: Gateway) -> None:
    line = open_line(gateway)
    for payload, code in (
        (bytes(WAITING_MAX), ReasonCode.SUCCESS),
        (b"x", ReasonCode.QUOTA_EXCEEDED),
    ):
        assert gateway.subscriptions.publish("nodes/n1/up", payload) == [code]
    assert len(await line.read()) == WAITING_MAX


def test_what_is_written_is_published(gateway: Gateway) -> None:
    line = open_line(gateway)
    assert line.write(b"answer")
    (message,) = gateway.broker.messages
    assert (message.topic, message.payload, message.qos) == ("nodes/n1/down", b"answer", 0)
    gateway.broker.code = ReasonCode.QUOTA_EXCEEDED
    assert not line.write(b"answer")


@pytest.mark.parametrize("name", ["topic://", "topic://a/#", "topic://+/b", "topic://$SYS"])
def test_a_line_has_one_topic_of_its_own(name: str) -> None:
    assert port("topic://nodes/n1") == "topic://nodes/n1"
    with pytest.raises(ValueError, match="such as topic://nodes/barn1"):
        port(name)
