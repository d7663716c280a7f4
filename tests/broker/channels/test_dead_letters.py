from dataclasses import replace

from gateway.broker.own_names import UPLINK_CLIENT
from gateway.settings.when_full import WhenFull
from tests.support.broker.channel_harness import (
    TIMEOUT,
    channel_of,
    consumer,
    durable,
    messages,
    publish,
    settings,
)
from tests.support.broker.durable_broker import DurableHarness
from tests.support.broker.inline import Inline


def test_a_message_goes_to_the_dead_letters_after_its_last_attempt() -> None:
    harness = durable(max_attempts=2, dead_letter_topic="dead")
    dead = harness.connect("dead")
    dead.subscribe("dead", 1)
    client = consumer(harness, "a")
    publish(harness, "x")
    for _ in range(3):
        harness.pass_time(TIMEOUT)
    assert [each.payload for each in messages(client)] == [b"x"]  # it might be busy
    (letter,) = messages(dead)
    assert letter.properties.user_properties == (
        ("topic", "t/a"),
        ("channel", "jobs"),
        ("attempt", "2"),
    )
    assert (channel_of(harness).depth, channel_of(harness).in_flight) == (0, 0)
    harness.pass_time(2)
    harness.crash()
    assert channel_of(harness).depth == 0


def test_without_a_topic_for_them_dead_letters_are_given_up() -> None:
    harness = durable(max_attempts=1)
    consumer(harness, "a")
    publish(harness, "x")
    harness.pass_time(TIMEOUT)
    assert (channel_of(harness).depth, channel_of(harness).figures.dropped) == (0, 1)


def test_a_dead_letter_that_is_refused_is_tried_again() -> None:
    of_channel = settings(max_attempts=1, dead_letter_topic="dead")
    harness = DurableHarness(replace(of_channel, queue_when_full=WhenFull.REJECT))
    full = harness.persistent("full")
    full.subscribe("dead", 1)
    full.drop()
    harness.session("full").queue.maximum_messages = 0
    client = consumer(harness, "a")
    publish(harness, "x")
    harness.pass_time(TIMEOUT)
    assert channel_of(harness).in_flight == 0
    harness.pass_time(1)
    client.take()
    assert channel_of(harness).in_flight == 1
    harness.session("full").queue.maximum_messages = 10
    harness.pass_time(TIMEOUT)
    assert channel_of(harness).figures.dead_lettered == 1


def test_a_dead_letter_has_its_publisher_even_after_a_crash() -> None:
    """What came down a link is known by it (`uplink/rules/rules.py`), not by what it says."""
    harness = durable(max_attempts=1, dead_letter_topic="dead")
    for name in (UPLINK_CLIENT, "p"):
        harness.publish("t/a", b"x", 1, client_id=name)
    harness.pass_time(2)
    harness.crash()
    rules = Inline()
    harness.broker.subscribe_inline(rules, ["#"])
    consumer(harness, "a")
    harness.pass_time(TIMEOUT)
    assert sorted(str(each.client_id) for each in rules.taken) == [UPLINK_CLIENT, "p"]
