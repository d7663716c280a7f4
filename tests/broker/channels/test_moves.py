import pytest

from gateway.mqtt.packets import PubAck, Publish
from gateway.settings.channel import Choice
from tests.support.broker.channel_harness import (
    TIMEOUT,
    channel_of,
    consumer,
    durable,
    got,
    messages,
    publish,
)
from tests.support.broker.durable_broker import DurableHarness
from tests.support.broker.memory_client import MemoryClient

TOPICS = [f"t/{number}" for number in range(8)]
"""Some of them move to a consumer that comes, and some do not."""


def joined(topic: str) -> tuple[DurableHarness, MemoryClient, MemoryClient, list[Publish]]:
    """A consumer that has "ab" of a topic, one that came then, and "c" that was published last."""
    harness = durable(choice=Choice.STICKY)
    first = consumer(harness, "first")
    publish(harness, "ab", topic)
    held = [*messages(first)]
    second = consumer(harness, "second")
    publish(harness, "c", topic)
    return harness, first, second, held


def test_a_topic_that_moves_waits_until_its_consumer_before_has_acknowledged() -> None:
    moved = 0
    for topic in TOPICS:
        _, first, second, held = joined(topic)
        if got(first) == "c":
            assert got(second) == ""
            continue
        for packet in held:
            assert got(second) == ""
            first.send(PubAck(packet.packet_id))
        assert got(second) == "c"
        moved += 1
    assert 0 < moved < len(TOPICS)


@pytest.mark.uncovered
@pytest.mark.parametrize("leaves", [True, False])
def test_a_topic_that_moves_comes_whole_and_in_order_if_it_is_not_acknowledged(
    leaves: bool,
) -> None:
    for topic in TOPICS:
        harness, first, second, _ = joined(topic)
        stayed = "c" in got(first, acknowledge=leaves)
        if leaves:
            first.drop()
        harness.pass_time(0 if leaves else TIMEOUT)
        assert got(second) == ("ab" if stayed and leaves else "abc")


def test_topics_do_not_wait_for_a_window_that_is_full_of_what_has_timed_out() -> None:
    harness = durable(choice=Choice.STICKY)
    stalled = consumer(harness, "stalled", receive_maximum=1)
    publish(harness, "a")
    (held,) = messages(stalled)
    worker = consumer(harness, "worker")
    for number in range(20):
        publish(harness, "x", f"t/{number}")
    got(worker)
    harness.pass_time(TIMEOUT)
    assert len(got(worker)) + len(got(worker)) > 0
    assert channel_of(harness).depth == 0
    publish(harness, "y", "t/a")
    assert channel_of(harness).depth == 0
    assert got(worker) == "y"
    stalled.send(PubAck(held.packet_id))
    publish(harness, "z" * 20, "t/a")
    for number in range(20):
        publish(harness, "x", f"t/{number}")
    assert got(stalled), "it has topics again"


def test_a_topic_waits_for_its_only_consumer_even_if_that_is_late() -> None:
    harness = durable(choice=Choice.STICKY)
    stalled = consumer(harness, "stalled", receive_maximum=1)
    publish(harness, "ab")
    (held,) = messages(stalled)
    harness.pass_time(TIMEOUT)
    assert channel_of(harness).depth == 1
    stalled.send(PubAck(held.packet_id))
    assert got(stalled) == "b"
