"""Consumers of a part of a channel's topics, of its second name, and those that nearly miss it."""

import pytest

from gateway.mqtt.packets import (
    MQTT_3_1_1,
    PubAck,
    SubAck,
    Subscribe,
    SubscriptionRequest,
    Unsubscribe,
)
from gateway.mqtt.reason_codes import ReasonCode
from gateway.settings.broker import BrokerSettings, Unconfigured
from gateway.settings.channel import ChannelSettings
from gateway.settings.when_full import WhenFull
from tests.support.broker.channel_harness import (
    SHARED,
    TIMEOUT,
    channel_of,
    consumer,
    durable,
    got,
    messages,
    publish,
    settings,
)
from tests.support.broker.durable_broker import DurableHarness
from tests.support.broker.memory_client import MemoryClient
from tests.support.broker.subscribing import request

EU = "$share/jobs/t/eu/#"


def of(harness: DurableHarness, topic_filter: str, name: str = "part") -> MemoryClient:
    client = harness.connect(name)
    assert client.subscribe(topic_filter, 1) == ReasonCode.GRANTED_QOS_1
    return client


def test_a_consumer_of_a_part_gets_that_part_of_the_channel() -> None:
    harness = durable()
    publish(harness, "a", "t/eu/1")
    publish(harness, "b", "t/us/1")
    part = of(harness, EU)
    assert got(part) == "a"
    publish(harness, "c", "t/eu/2")
    assert got(part) == "c"  # "b" is set aside, and not dropped
    assert (channel_of(harness).depth, channel_of(harness).figures.filtered) == (1, 0)
    whole = consumer(harness, "whole")
    assert got(whole) == "b"
    publish(harness, "defg", "t/eu/3")
    assert sorted(got(part) + got(whole)) == [*"defg"]  # each goes to one of them
    assert len(channel_of(harness).consumers) == 2


def test_who_is_next_to_a_consumer_of_another_part_gets_no_turn_of_it() -> None:
    harness = durable()
    clients = [consumer(harness, "a"), of(harness, EU), consumer(harness, "c")]
    publish(harness, "123456", "t/us/1")
    assert [len(got(each)) for each in clients] == [3, 0, 3]


def test_a_consumer_of_a_part_that_asks_for_the_whole_gets_what_was_set_aside() -> None:
    harness = durable()
    client = of(harness, EU)
    publish(harness, "a", "t/us/1")
    assert got(client) == ""
    client.send(Subscribe(5, [request("$queue/jobs", 1)]))
    harness.pass_time(0)
    assert got(client) == "a"


def test_a_part_ends_with_its_subscription_and_survives_a_crash() -> None:
    harness = durable()
    part = harness.persistent("part")
    part.subscribe(EU, 1)
    harness.pass_time(2)
    harness.crash()
    part = harness.persistent("part")
    publish(harness, "a", "t/eu/1")
    assert got(part) == "a"
    part.send(Unsubscribe(5, [EU]))
    part.take()
    publish(harness, "b", "t/eu/1")
    assert (got(part), channel_of(harness).depth) == ("", 1)
    assert len(channel_of(harness).consumers) == 0


def test_parts_join_a_channel_that_begins_later_and_are_shared_again_after_it() -> None:
    harness = DurableHarness(BrokerSettings())
    part = of(harness, EU)
    other = of(harness, "$share/other/t/eu/#", "other")
    harness.broker.channels.change(settings(), WhenFull.REJECT)
    publish(harness, "a", "t/eu/1")
    publish(harness, "b", "t/us/1")
    assert (got(part), got(other), channel_of(harness).depth) == ("a", "a", 1)
    harness.broker.channels.delete(channel_of(harness))
    publish(harness, "c", "t/eu/1")
    assert (got(part), got(other)) == ("c", "c")


def test_a_part_begins_a_temporary_channel() -> None:
    harness = durable(temporary=True)
    part = of(harness, EU)
    publish(harness, "a", "t/eu/1")
    publish(harness, "b", "t/us/1")
    assert (got(part), channel_of(harness).depth) == ("a", 1)
    part.send(Unsubscribe(5, [EU]))
    harness.pass_time(0)
    assert not len(harness.broker.channels)


def test_a_part_at_qos_0_is_refused_like_the_whole() -> None:
    harness = durable()
    assert harness.connect("part").subscribe(EU, 0) == ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR


def test_a_full_channel_has_no_capacity_for_a_part() -> None:
    harness = durable(maximum_consumers=1)
    consumer(harness, "whole")
    assert harness.connect("part").subscribe(EU, 1) == ReasonCode.QUOTA_EXCEEDED


@pytest.mark.parametrize("first", [EU, SHARED])
def test_channels_of_consumers_are_what_their_filters_say(first: str) -> None:
    harness = DurableHarness(BrokerSettings(unconfigured_channels=Unconfigured.DURABLE))
    clients = [of(harness, each, each[-4:]) for each in (first, EU, SHARED)]
    publish(harness, "a", "t/eu/1")
    assert sorted(got(each) for each in clients) == ["", "a", "a"]


def test_a_channel_of_a_part_separates_it() -> None:
    harness = durable()
    part = of(harness, EU)
    one = ChannelSettings("jobs", "t/#"), ChannelSettings("jobs", "t/eu/#")
    harness.broker.channels.change(BrokerSettings(channels=one), WhenFull.REJECT)
    publish(harness, "a", "t/eu/1")
    assert (got(part), [each.depth for each in harness.broker.channels]) == ("a", [1, 0])


def test_a_consumer_s_own_channel_of_a_part_stays_when_the_whole_begins() -> None:
    harness = DurableHarness(BrokerSettings(unconfigured_channels=Unconfigured.DURABLE))
    part = of(harness, EU)
    whole = BrokerSettings(channels=(ChannelSettings("jobs", "t/#"),))
    harness.broker.channels.change(whole, WhenFull.REJECT)
    publish(harness, "a", "t/eu/1")
    assert (got(part), [each.depth for each in harness.broker.channels]) == ("a", [0, 1])


def test_the_second_name_needs_no_filter() -> None:
    harness = durable()
    client = of(harness, "$queue/jobs")
    publish(harness, "a")
    (first,) = messages(client)
    client.send(PubAck(first.packet_id))
    client.send(Unsubscribe(5, ["$queue/jobs", "$queue/other"]))
    (answer,) = client.take()
    assert answer.reason_codes == [ReasonCode.SUCCESS, ReasonCode.NO_SUBSCRIPTION_EXISTED]  # type: ignore[union-attr]  # UNSUBACK
    assert len(channel_of(harness).consumers) == 0
    assert of(durable(temporary=True), "$queue/jobs")


def test_the_second_name_may_have_a_part() -> None:
    harness = durable()
    client = of(harness, "$queue/jobs/t/eu/#")
    publish(harness, "a", "t/eu/1")
    publish(harness, "b", "t/us/1")
    assert (got(client), channel_of(harness).depth) == ("a", 1)
    assert got(of(harness, "$queue/jobs/t/#", "whole")) == "b"


def answer_to(harness: DurableHarness, topic_filter: str, qos: int = 1, **how: int) -> SubAck:
    client = harness.connect("c", **how)  # type: ignore[arg-type]  # by name
    client.send(Subscribe(5, [request(topic_filter, qos)]))
    return client.take_only(SubAck)


@pytest.mark.parametrize(
    "topic_filter", ["$queue/job", "$queue/orders/#", "$queue/", "$queue/jobs/u"]
)
def test_an_unknown_second_name_is_refused(
    topic_filter: str, caplog: pytest.LogCaptureFixture
) -> None:
    answer = answer_to(durable(), topic_filter)
    assert answer.reason_codes == [ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR]
    said = f"{topic_filter}: there is no channel of this name with such topics"
    assert answer.properties.reason_string == said
    assert said in caplog.text
    assert answer_to(durable(), topic_filter, version=MQTT_3_1_1).reason_codes == [0x80]


@pytest.mark.parametrize(
    ("topic_filter", "said"),
    [
        ("$share/jobs/u/#", "the channel jobs has the filter t/#"),
        ("$share/jobs/#", "the channel jobs has the filter t/#"),
        ("$share/job/t/#", "there is a channel jobs, but none job"),
        ("$share/Jobs/t/eu", "there is a channel jobs, but none Jobs"),
        ("$share/workers/t/#", None),
        ("$share/job/u/#", None),
        ("t/#", None),
        (SHARED, None),
        (EU, None),
    ],
)
def test_who_nearly_misses_a_channel_is_warned(
    topic_filter: str, said: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    answer = answer_to(durable(), topic_filter)
    assert answer.reason_codes == [ReasonCode.GRANTED_QOS_1]
    found = answer.properties.reason_string
    if said is None:
        assert (found, caplog.text) == (None, "")
    else:
        said = f"{topic_filter}: {said}; this subscription gets none of its messages"
        assert found == said
        assert said in caplog.text


def test_long_names_and_filters_among_many_are_not_compared() -> None:
    harness, name = durable(), "j" * 65
    harness.broker.channels.create(ChannelSettings(name, "t/#"))
    assert answer_to(harness, f"$share/{name}s/t/#").properties.reason_string is None
    many = [SubscriptionRequest(f"$share/job/t/{number}", 1) for number in range(9)]
    assert harness.connect("many").subscribe_all(many).properties.reason_string is None


def test_what_times_out_stays_if_the_other_consumer_has_another_part() -> None:
    harness = durable()
    whole = consumer(harness, "whole")
    publish(harness, "a", "t/us/1")
    (job,) = messages(whole)
    part = of(harness, EU)
    harness.pass_time(TIMEOUT)
    assert (got(part), channel_of(harness).in_flight) == ("", 1)
    whole.send(PubAck(job.packet_id))
    assert channel_of(harness).figures.acknowledged == 1
