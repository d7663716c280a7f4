import pytest

from gateway.broker.arrival import Arrival
from gateway.broker.settings import BrokerSettings
from gateway.mqtt.packets import (
    MQTT_3_1_1,
    MQTT_5,
    Packet,
    PubAck,
    Publish,
    SubAck,
    Subscribe,
    SubscriptionRequest,
    Unsubscribe,
)
from gateway.mqtt.properties import Properties
from gateway.mqtt.reason_codes import ReasonCode
from tests.support.broker_harness import Harness

VERSIONS = (MQTT_3_1_1, MQTT_5)
QUOTA = ReasonCode.QUOTA_EXCEEDED


def topics(packets: list[Packet]) -> list[str]:
    return [packet.topic for packet in packets if isinstance(packet, Publish)]


def request(topic_filter: str, qos: int = 0, **options: object) -> SubscriptionRequest:
    return SubscriptionRequest(topic_filter, qos, **options)  # type: ignore[arg-type]  # by name


# --- granting -------------------------------------------------------------------------------


def test_each_topic_filter_is_answered(harness: Harness) -> None:
    client = harness.connect()
    client.send(
        Subscribe(5, [request("a", 0), request("b/#/c", 1), request("$share//d"), request("e", 2)])
    )
    invalid = ReasonCode.TOPIC_FILTER_INVALID
    codes = [ReasonCode.SUCCESS, invalid, invalid, ReasonCode.GRANTED_QOS_2]
    assert client.take() == [SubAck(5, codes)]
    assert {one.topic_filter for _, one in harness.broker.router.subscriptions()} == {"a", "e"}


def test_mqtt_3_1_1_is_told_of_a_refusal_with_0x80(harness: Harness) -> None:
    client = harness.connect("c", MQTT_3_1_1)
    client.send(Subscribe(5, [request("b/#/c", 1), request("a", 1)]))
    assert client.raw.endswith(b"\x90\x04\x00\x05\x80\x01")


@pytest.mark.parametrize(
    ("granted", "published", "delivered"),
    [(granted, qos, min(granted, qos)) for granted in (0, 1, 2) for qos in (0, 1, 2)],
)
def test_the_lower_qos_counts(
    harness: Harness, granted: int, published: int, delivered: int
) -> None:
    client = harness.connect()
    client.subscribe("a", granted)
    harness.publish("a", qos=published)
    (publish,) = client.take()
    assert isinstance(publish, Publish)
    assert publish.qos == delivered


def test_the_number_of_subscriptions_is_bounded() -> None:
    harness = Harness(BrokerSettings(maximum_subscriptions=2))
    client = harness.connect()
    codes = client.subscribe_all([request(name) for name in ("a", "b", "c", "a")]).reason_codes
    assert codes == [ReasonCode.SUCCESS, ReasonCode.SUCCESS, QUOTA, ReasonCode.SUCCESS]
    assert harness.counters.count("tidegate/refused/subscriptions") == 1


def test_what_all_subscriptions_occupy_is_bounded() -> None:
    harness = Harness(BrokerSettings(maximum_subscription_bytes=2_000))
    first, second = harness.connect("first"), harness.connect("second")
    names = [f"a/{number}" for number in range(100)]
    granted = next(count for count, name in enumerate(names) if first.subscribe(name) == QUOTA)
    assert 20 < granted < 90
    harness.counters.set("tidegate/refused/subscriptions", 0)
    assert second.subscribe("c") == QUOTA
    assert first.subscribe("a/0", 1) == ReasonCode.GRANTED_QOS_1  # in place of the one it has
    first.drop()
    assert second.subscribe("c") == ReasonCode.SUCCESS
    assert harness.counters.count("tidegate/refused/subscriptions") == 1


def test_a_subscription_is_replaced(harness: Harness) -> None:
    client = harness.connect()
    client.subscribe("a", 2)
    client.subscribe("a", 0)
    harness.publish("a", qos=2)
    assert client.take() == [Publish("a", b"x")]
    assert len(harness.broker.router) == 1


# --- overlapping, No Local, shared ----------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
def test_overlapping_subscriptions_give_one_copy_at_the_highest_qos(
    harness: Harness, version: int
) -> None:
    client = harness.connect("c", version)
    for topic_filter, qos in [("a/b", 0), ("a/+", 2), ("#", 1)]:
        client.subscribe(topic_filter, qos)
    harness.publish("a/b", qos=2)
    assert client.take() == [Publish("a/b", b"x", 2, packet_id=1)]


def test_every_subscription_identifier_that_matched_is_given(harness: Harness) -> None:
    client = harness.connect()
    client.subscribe_all([request("a/b")], identifier=7)
    client.subscribe_all([request("a/+")], identifier=268_435_455)
    client.subscribe_all([request("#")])
    harness.publish("a/b")
    harness.publish("a/c")
    harness.publish("b")
    identifiers = [
        set(packet.properties.subscription_identifiers)
        for packet in client.take()
        if isinstance(packet, Publish)
    ]
    assert identifiers == [{7, 268_435_455}, {268_435_455}, set()]


def test_a_replaced_subscription_has_the_new_identifier(harness: Harness) -> None:
    client = harness.connect()
    client.subscribe_all([request("a")], identifier=7)
    client.subscribe_all([request("a")], identifier=8)
    harness.publish("a")
    (publish,) = client.take()
    assert isinstance(publish, Publish)
    assert publish.properties.subscription_identifiers == (8,)


def test_no_local(harness: Harness) -> None:
    client, other = harness.connect(), harness.connect("other")
    client.subscribe("a", no_local=True)
    client.subscribe("b")
    client.send(Publish("a"), Publish("b"))
    assert topics(client.take()) == ["b"]
    other.send(Publish("a"))
    assert topics(client.take()) == ["a"]


def test_no_local_counts_for_retained_messages_too(harness: Harness) -> None:
    client, other = harness.connect(), harness.connect("other")
    client.send(Publish("a/mine", b"x", retain=True))
    other.send(Publish("a/theirs", b"x", retain=True))
    client.subscribe("a/+", no_local=True)
    assert topics(client.take()) == ["a/theirs"]
    client.subscribe("a/#")
    assert sorted(topics(client.take())) == ["a/mine", "a/theirs"]


def test_a_shared_subscription_gives_each_message_to_one(harness: Harness) -> None:
    members = [harness.connect(f"m{number}") for number in range(3)]
    for member in members:
        member.subscribe("$share/g/a/+", 1)
    for _ in range(9):
        harness.publish("a/b", qos=1)
    assert [len(member.take()) for member in members] == [3, 3, 3]


def test_a_member_has_its_own_subscriptions_beside_the_shared_one(harness: Harness) -> None:
    client = harness.connect()
    client.subscribe("$share/g/a")
    client.subscribe("a")
    harness.publish("a")
    assert topics(client.take()) == ["a", "a"]


# --- retained -------------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
def test_a_new_subscription_gets_what_is_retained(harness: Harness, version: int) -> None:
    for topic in ("a/b", "a/c", "b"):
        harness.publish(topic, topic.encode(), qos=1, retain=True)
    client = harness.connect("c", version)
    client.subscribe("a/+", 2)
    retained = sorted(client.take(), key=repr)
    assert [(p.topic, p.payload, p.qos, p.retain) for p in retained if isinstance(p, Publish)] == [
        ("a/b", b"a/b", 1, True),
        ("a/c", b"a/c", 1, True),
    ]


def test_retain_is_set_only_on_what_the_subscription_brings(harness: Harness) -> None:
    plain, as_published = harness.connect("plain"), harness.connect("as published")
    plain.subscribe("a")
    as_published.subscribe("a", retain_as_published=True)
    harness.publish("a", retain=True)
    harness.publish("a")
    assert plain.take() == [Publish("a", b"x"), Publish("a", b"x")]
    assert as_published.take() == [Publish("a", b"x", retain=True), Publish("a", b"x")]
    plain.subscribe("a")
    assert plain.take() == [Publish("a", b"x", retain=True)]


@pytest.mark.parametrize(("handling", "expected"), [(0, [1, 1]), (1, [1, 0]), (2, [0, 0])])
def test_retain_handling(harness: Harness, handling: int, expected: list[int]) -> None:
    harness.publish("a", retain=True)
    client = harness.connect()
    brought = []
    for _ in range(2):
        client.subscribe("a", retain_handling=handling)
        brought.append(len(client.take()))
    assert brought == expected


def test_a_shared_subscription_brings_nothing_retained(harness: Harness) -> None:
    harness.publish("a", retain=True)
    client = harness.connect()
    client.subscribe("$share/g/a")
    assert not client.take()


def test_an_empty_payload_clears_what_is_retained(harness: Harness) -> None:
    live, late = harness.connect("live"), harness.connect("late")
    harness.publish("a", retain=True)
    live.subscribe("a", retain_handling=2)
    harness.publish("a", b"", retain=True)
    assert live.take() == [Publish("a", b"")]
    late.subscribe("a")
    assert not late.take()


def test_a_retained_message_expires(harness: Harness) -> None:
    harness.publish("a", retain=True, message_expiry=10)
    client = harness.connect()
    harness.pass_time(4)
    client.subscribe("a")
    (publish,) = client.take()
    assert isinstance(publish, Publish)
    assert publish.properties.message_expiry_interval == 6
    harness.pass_time(6)
    client.subscribe("a")
    assert not client.take()


def test_system_topics_need_to_be_named(harness: Harness) -> None:
    harness.publish("$SYS/broker/uptime", retain=True)
    client = harness.connect()
    client.subscribe("#")
    client.subscribe("+/broker/uptime")
    assert not client.take()
    client.subscribe("$SYS/#")
    assert topics(client.take()) == ["$SYS/broker/uptime"]


# --- $where ---------------------------------------------------------------------------------

WARM = "payload.value > 20"


def value(number: float) -> bytes:
    return b'{"value":%d}' % number


def where(topic_filter: str, *expressions: str, packet_id: int = 5) -> Subscribe:
    properties = Properties(user_properties=tuple(("$where", text) for text in expressions))
    return Subscribe(packet_id, [request(topic_filter, 1)], properties)


def test_only_what_is_true_is_delivered(harness: Harness) -> None:
    client = harness.connect()
    client.subscribe_all([request("a/+")], WARM)
    for payload in (value(20), value(21), b"not JSON", b'{"value":null}'):
        harness.publish("a/b", payload)
    assert client.take() == [Publish("a/b", value(21))]
    assert harness.broker.budget.filtered == 3


def test_the_filter_counts_for_every_topic_filter_of_the_packet(harness: Harness) -> None:
    client = harness.connect()
    client.subscribe_all([request("a"), request("b")], WARM)
    for topic in ("a", "b"):
        harness.publish(topic, value(19))
        harness.publish(topic, value(30))
    assert topics(client.take()) == ["a", "b"]


SYNTAX = ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR
REFUSED = {
    "syntax": ("payload.value >", SYNTAX, "$where:15: "),
    "empty": ("", SYNTAX, "$where:0: "),
    "blank": ("  ", SYNTAX, "$where:2: "),
    "too long": ("x = 1 OR " * 500 + "x = 1", QUOTA, "$where:0: "),
    "too deep": ("(" * 33 + "x" + ")" * 33 + " = 1", QUOTA, "$where:32: "),
}


@pytest.mark.parametrize(("text", "code", "beginning"), REFUSED.values(), ids=REFUSED.keys())
def test_an_expression_in_error_refuses_every_topic_filter(
    harness: Harness, text: str, code: ReasonCode, beginning: str
) -> None:
    client = harness.connect()
    client.subscribe_all([request("a")], WARM)
    suback = client.subscribe_all([request("a"), request("b/#/c"), request("c")], text)
    assert suback.reason_codes == [code] * 3
    assert suback.properties.reason_string is not None
    assert suback.properties.reason_string.startswith(beginning)
    harness.publish("c", value(30))
    harness.publish("a", value(19))
    assert not client.take()
    harness.publish("a", value(21))
    assert len(client.take()) == 1


def test_the_reason_has_at_most_200_bytes_of_utf_8(
    harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    client = harness.connect()
    suback = client.subscribe_all([request("a")], f"x = 1 {'é' * 300}")
    reason = suback.properties.reason_string
    assert reason is not None
    assert reason.startswith("$where:6: ")
    assert len(reason.encode()) <= 200
    (line,) = caplog.messages
    assert line.startswith(f"client 'c': {reason}")


def test_the_reason_is_left_out_for_whom_it_is_not(harness: Harness) -> None:
    asked_not_to = harness.connect(request_problem_information=0)
    assert asked_not_to.subscribe_all([request("a")], "(").properties == Properties()
    small = harness.connect("small", maximum_packet_size=20)
    suback = small.subscribe_all([request("a")], "(")
    assert suback.properties == Properties()
    assert suback.reason_codes == [SYNTAX]


def test_the_first_where_counts_and_no_other_is_parsed(harness: Harness) -> None:
    client = harness.connect()
    properties = (("other", "("), ("$WHERE", "("), ("$where", WARM), ("$where", "("))
    client.send(Subscribe(5, [request("a")], Properties(user_properties=properties)))
    assert client.take() == [SubAck(5, [ReasonCode.SUCCESS])]
    harness.publish("a", value(19))
    assert not client.take()


def test_the_filter_is_replaced_and_removed(harness: Harness) -> None:
    client = harness.connect()
    for text, delivered in [("payload.value > 20", 0), ("payload.value > 10", 1), (None, 1)]:
        client.subscribe_all([request("a")], text)
        harness.publish("a", value(15))
        assert len(client.take()) == delivered


def test_a_client_has_a_quota_of_filters(harness: Harness) -> None:
    client = harness.connect()
    for number in range(64):
        suback = client.subscribe_all([request(f"a/{number}")], WARM)
        assert suback.reason_codes == [ReasonCode.SUCCESS]
    suback = client.subscribe_all([request("b")], WARM)
    assert suback.reason_codes == [QUOTA]
    assert (
        suback.properties.reason_string
        == "$where:0: a client has at most 64 filtered subscriptions"
    )
    assert client.subscribe("b") == ReasonCode.SUCCESS
    assert client.subscribe_all([request("a/5")], "payload.value > 3").reason_codes == [0]
    client.send(Unsubscribe(6, ["a/5"]))
    client.take()
    assert client.subscribe_all([request("c")], WARM).reason_codes == [ReasonCode.SUCCESS]
    assert harness.connect("other").subscribe_all([request("b")], WARM).reason_codes == [0]


def test_the_broker_has_a_quota_of_distinct_expressions() -> None:
    harness = Harness(BrokerSettings(maximum_expressions=1))
    client = harness.connect()
    assert client.subscribe_all([request("a")], "x = 1").reason_codes == [ReasonCode.SUCCESS]
    suback = client.subscribe_all([request("b")], "x = 2")
    assert suback.reason_codes == [QUOTA]
    assert suback.properties.reason_string == "$where:0: all 1 distinct expressions are in use"
    assert client.subscribe_all([request("b")], "x = 1").reason_codes == [ReasonCode.SUCCESS]


def test_retained_messages_are_filtered(harness: Harness) -> None:
    for number in range(18, 24):
        harness.publish(f"a/{number}", value(number), retain=True)
    client = harness.connect()
    client.subscribe_all([request("a/+")], WARM)
    assert sorted(topics(client.take())) == ["a/21", "a/22", "a/23"]
    assert (harness.broker.budget.evaluated, harness.broker.budget.filtered) == (6, 3)


def test_a_filter_looks_at_what_was_published(harness: Harness) -> None:
    client, publisher = harness.connect(), harness.connect("p", username="anna")
    text = "$qos = 2 AND $retain AND $clientid = 'p' AND $username = 'anna' AND site = 'A'"
    client.subscribe_all([request("a", 0)], text)
    properties = Properties(user_properties=(("site", "A"),))
    publisher.send(
        Publish("a", b"1", 2, retain=True, packet_id=1, properties=properties),
        Publish("a", b"2", 1, retain=True, packet_id=2, properties=properties),
    )
    assert [packet.payload for packet in client.take() if isinstance(packet, Publish)] == [b"1"]


def test_filtered_subscriptions_take_no_part_in_the_delivery(harness: Harness) -> None:
    client = harness.connect()
    client.subscribe_all([request("a", 2)], "payload.value > 100", identifier=1)
    client.subscribe_all([request("#", 0)], identifier=2)
    harness.publish("a", value(1), qos=2)
    assert client.take() == [
        Publish("a", value(1), properties=Properties(subscription_identifiers=(2,)))
    ]


def test_a_shared_group_gives_a_message_to_a_member_whose_filter_is_true(harness: Harness) -> None:
    cold, warm = harness.connect("cold"), harness.connect("warm")
    cold.subscribe_all([request("$share/g/a")], "payload.value <= 20")
    warm.subscribe_all([request("$share/g/a")], WARM)
    for number in (1, 2, 30, 3, 31):
        harness.publish("a", value(number))
    harness.publish("a", b"neither")
    assert len(cold.take()) == 3
    assert len(warm.take()) == 2


def test_the_filter_is_asked_once_when_the_message_comes(harness: Harness) -> None:
    first = harness.persistent(receive_maximum=1)
    first.send(where("a", WARM))
    first.take()
    first.drop()
    harness.publish("a", value(19), qos=1)
    harness.publish("a", value(21), qos=1)
    assert len(harness.session().queue) == 1
    evaluated = harness.broker.budget.evaluated
    second = harness.persistent(receive_maximum=1)
    second.send(PubAck(1))
    assert harness.broker.budget.evaluated == evaluated == 2


def test_a_filter_that_can_never_be_true_is_accepted_with_a_warning(
    harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    client = harness.connect()
    assert client.subscribe_all([request("a")], "1 = 2").reason_codes == [ReasonCode.SUCCESS]
    assert caplog.messages == ["client 'c': filter can never be true: 1 = 2"]


def test_where_on_a_publish_is_an_ordinary_property(harness: Harness) -> None:
    client = harness.connect()
    client.subscribe("a")
    properties = Properties(user_properties=(("$where", "("),))
    client.send(Publish("a", properties=properties))
    assert client.take() == [Publish("a", properties=properties)]


def test_who_published_is_not_told_by_filters_of_some_listeners(harness: Harness) -> None:
    trusted = harness.connect("trusted")
    guest = harness.connect("guest", arrival=Arrival(where_identity=False))
    for client in (trusted, guest):
        client.subscribe_all([request("a")], "$clientid = 'p'")
        client.subscribe_all([request("b")], "$clientid IS NULL")
    publisher = harness.connect("p")
    publisher.send(Publish("a", b"1"), Publish("b", b"2"))
    assert trusted.take() == [Publish("a", b"1")]
    assert guest.take() == [Publish("b", b"2")]
    publisher.send(Publish("a", b"1", retain=True))
    trusted.take()
    trusted.subscribe_all([request("a")], "$clientid = 'p'")
    guest.subscribe_all([request("a")], "$clientid = 'p'")
    assert [packet.payload for packet in trusted.take() if isinstance(packet, Publish)] == [b"1"]
    assert not guest.take()
