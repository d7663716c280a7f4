"""What happens to messages that consumers acknowledge after `inflight_timeout`."""

import pytest

from gateway.mqtt.packets import PubAck, Publish
from gateway.mqtt.reason_codes import ReasonCode
from gateway.session.queue.memory import HEAD_BYTES
from tests.support.broker.channel_harness import (
    SHARED,
    TIMEOUT,
    channel_of,
    consumer,
    durable,
    eight,
    got,
    messages,
    publish,
)
from tests.support.broker.durable_broker import DurableHarness
from tests.support.broker.memory_client import MemoryClient
from tests.support.broker.subscribing import request


def counts(harness: DurableHarness) -> tuple[int, int, int, int]:
    channel = channel_of(harness)
    return channel.depth, channel.in_flight, channel.figures.delivered, channel.figures.acknowledged


def test_a_single_consumer_gets_a_long_job_once_and_ends_it() -> None:
    harness = durable()
    worker = consumer(harness, "worker", receive_maximum=3)
    publish(harness, "abc")
    jobs = [*messages(worker)]
    for job in jobs:  # each takes more than four times as long as it may
        for _ in range(4):
            harness.pass_time(TIMEOUT + 1)
        worker.send(PubAck(job.packet_id))
    assert got(worker) == ""
    assert counts(harness) == (0, 0, 3, 3)
    assert channel_of(harness).figures.timed_out_again > 0
    harness.pass_time(2)
    harness.crash()
    assert channel_of(harness).depth == 0


def test_a_consumer_that_never_acknowledges_ends_at_the_last_attempt() -> None:
    harness = durable(max_attempts=3, dead_letter_topic="dead")
    dead = harness.connect("dead")
    dead.subscribe("dead", 1)
    worker = consumer(harness, "worker")
    publish(harness, "x")
    for _ in range(3):
        assert got(dead) == ""
        harness.pass_time(TIMEOUT)
    assert got(dead) == "x"
    assert counts(harness)[:3] == (0, 0, 1)
    worker.send(PubAck(1))  # nobody has it
    assert counts(harness) == (0, 0, 1, 0)


def test_attempts_of_a_kept_message_survive_a_crash() -> None:
    harness = durable(max_attempts=3, dead_letter_topic="dead")
    consumer(harness, "worker")
    publish(harness, "x")
    harness.pass_time(TIMEOUT)
    harness.pass_time(TIMEOUT)
    harness.pass_time(2)
    harness.crash()
    harness.pass_time(0)
    assert channel_of(harness).figures.dead_lettered == 1


def test_a_message_that_would_be_lost_stays_as_long_as_its_only_consumer() -> None:
    harness = durable(max_attempts=3)
    worker = consumer(harness, "worker")
    publish(harness, "x")
    for _ in range(10):
        harness.pass_time(TIMEOUT)
    assert counts(harness) == (0, 1, 1, 0)
    assert channel_of(harness).figures.timed_out_again == 9
    worker.drop()
    harness.pass_time(0)
    assert got(consumer(harness, "other"), acknowledge=False) == "x"
    harness.pass_time(TIMEOUT)
    assert channel_of(harness).figures.dropped == 0


def busy(harness: DurableHarness) -> tuple[MemoryClient, Publish]:
    """A consumer whose window a message fills that is in time."""
    other = consumer(harness, "other", receive_maximum=1)
    harness.pass_time(1)
    for payload in "xy":
        publish(harness, payload)
        if jobs := [*messages(other)]:
            break
    harness.pass_time(TIMEOUT - 1)
    return other, jobs[0]


@pytest.mark.parametrize("paused", [False, True])
def test_an_acknowledgement_ends_a_message_that_waits_for_another(paused: bool) -> None:
    harness = durable()
    worker = consumer(harness, "worker")
    harness.connect("p").send(*eight())
    jobs = [*messages(worker)]
    other, job = busy(harness)
    if paused:  # they are set aside
        harness.broker.channels.pause_filter("t/a")
        channel_of(harness).go_on()
        harness.pass_time(0)
    assert channel_of(harness).depth == 8
    worker.send(PubAck(jobs[0].packet_id))
    assert channel_of(harness).depth == 7
    worker.send(*(PubAck(each.packet_id) for each in jobs[1:]))
    assert channel_of(harness).depth == 0
    other.send(PubAck(job.packet_id))
    got(worker)
    assert counts(harness)[:2] == (0, 0)
    assert channel_of(harness).deliveries.late == {}


def test_an_acknowledgement_ends_a_message_that_is_put_off() -> None:
    harness = durable()
    first = consumer(harness, "first")
    publish(harness, "x")
    second = consumer(harness, "second")
    harness.pass_time(TIMEOUT)
    assert got(second, acknowledge=False) == "x"
    channel_of(harness).requeue("second", harness.now + 60)
    first.send(PubAck(1))
    assert counts(harness)[:2] == (0, 0)


def test_another_consumer_that_has_it_must_acknowledge() -> None:
    harness = durable()
    first = consumer(harness, "first")
    publish(harness, "x")
    second = consumer(harness, "second")
    harness.pass_time(TIMEOUT)
    first.send(PubAck(1))
    assert counts(harness) == (0, 1, 2, 0)
    assert got(second) == "x"
    assert counts(harness) == (0, 0, 2, 1)


def test_two_consumers_get_a_long_job_once_each() -> None:
    harness = durable()
    workers = [consumer(harness, name) for name in ("a", "b")]
    publish(harness, "x")
    for _ in range(4):
        harness.pass_time(TIMEOUT)
    assert [got(each, acknowledge=False) for each in workers] == ["x", "x"]
    assert got(consumer(harness, "c")) == ""
    harness.pass_time(TIMEOUT)
    assert got(harness.clients[-1]) == "x"
    assert counts(harness)[:2] == (0, 0)


def test_the_same_consumer_may_have_it_twice_and_ends_both() -> None:
    harness = durable()
    worker = consumer(harness, "worker")
    publish(harness, "x")
    other = consumer(harness, "other")
    harness.pass_time(TIMEOUT)
    assert got(worker, acknowledge=False) == "x"
    other.send(PubAck(1, ReasonCode.UNSPECIFIED_ERROR))
    other.drop()
    harness.pass_time(0)
    (again,) = messages(worker)
    worker.send(PubAck(1))
    assert counts(harness) == (0, 0, 3, 1)
    worker.send(PubAck(again.packet_id))
    assert counts(harness) == (0, 0, 3, 1)


def test_a_requeue_frees_the_window_of_late_messages() -> None:
    harness = durable()
    worker = consumer(harness, "worker", receive_maximum=1)
    publish(harness, "x")
    other = consumer(harness, "other")
    harness.pass_time(TIMEOUT)
    assert got(other, acknowledge=False) == "x"
    assert channel_of(harness).requeue("worker") == 0
    publish(harness, "y")
    assert "y" in got(worker)[-1:] + got(other)


def test_a_consumer_whose_filter_excludes_a_message_does_not_get_it_instead() -> None:
    harness = durable()
    worker = consumer(harness, "worker")
    other = harness.connect("other")
    other.subscribe_all([request(SHARED, 1)], where="payload.value = 1")
    publish(harness, "x")
    harness.pass_time(TIMEOUT)
    assert (got(other), counts(harness)) == ("", (0, 1, 1, 0))
    assert got(worker) == "x"


def test_a_large_message_that_was_set_aside_makes_way_when_it_ends() -> None:
    harness = durable()
    worker = consumer(harness, "worker")
    harness.publish("t/a", b"x" * HEAD_BYTES, 1)
    (job,) = messages(worker)
    busy(harness)
    harness.broker.channels.pause_filter("t/a")
    channel_of(harness).go_on()
    harness.pass_time(0)
    returned = channel_of(harness).waiting.returned
    assert (returned.held_messages, returned.holds_more) == (1, False)
    worker.send(PubAck(job.packet_id))
    assert (returned.held_messages, returned.holds_more) == (0, True)
