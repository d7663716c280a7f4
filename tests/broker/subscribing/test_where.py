"""Subscriptions with a `$where`."""

import pytest

from gateway.broker.connecting.connection_info import ConnectionInfo
from gateway.mqtt.codec.packet_codec import encode
from gateway.mqtt.packets import MQTT_5, PubAck, Publish, SubAck, Subscribe, Unsubscribe
from gateway.mqtt.properties import Properties
from gateway.mqtt.reason_codes import ReasonCode
from gateway.settings.broker import BrokerSettings
from tests.support.broker.broker_harness import Harness
from tests.support.broker.subscribing import request, topics

QUOTA = ReasonCode.QUOTA_EXCEEDED
WARM = "payload.value > 20"


def value(number: float) -> bytes:
    return b'{"value":%d}' % number


def where(topic_filter: str, *expressions: str, packet_id: int = 5) -> Subscribe:
    properties = Properties(user_properties=tuple(("$where", text) for text in expressions))
    return Subscribe(packet_id, [request(topic_filter, 1)], properties)


@pytest.mark.parametrize(
    ("text", "filtered"), [(WARM, 0), (f"{WARM} AND $payload_size", 0), (f"NOT NOT {WARM}", 3)]
)
def test_only_what_is_true_is_delivered(harness: Harness, text: str, filtered: int) -> None:
    client = harness.connect()
    client.subscribe_all([request("a/+")], text)
    for payload in (value(20), value(21), b"not JSON", b'{"value":null}'):
        harness.publish("a/b", payload)
    assert client.take() == [Publish("a/b", value(21))]
    assert harness.broker.budget.passed == 1
    assert harness.broker.budget.filtered == filtered  # whom the index finds alone is asked


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
    suback = client.subscribe_all([request("a"), request("b/#"), request("c")], text)
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


def test_an_expression_needs_room_among_the_subscriptions(harness: Harness) -> None:
    client = harness.connect()
    client.subscribe_all([request("a")], WARM)
    harness.broker.router.maximum_bytes = harness.broker.router.bytes
    suback = client.subscribe_all([request("a")], "payload.value > 21")
    assert suback.reason_codes == [QUOTA]
    reason = "$where:0: subscriptions hold all the memory they may"
    assert suback.properties.reason_string == reason
    assert client.subscribe_all([request("a")], WARM).reason_codes == [ReasonCode.SUCCESS]
    assert client.subscribe("a") == ReasonCode.SUCCESS


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


def test_the_filter_is_asked_once_when_the_message_comes(harness: Harness) -> None:
    first = harness.persistent(receive_maximum=1)
    first.send(where("a", f"NOT NOT {WARM}"))
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
    guest = harness.connect("guest", info=ConnectionInfo(where_identity=False))
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


LONG_TEXT = " OR ".join(f"payload.a{number} = {number}" for number in range(90))


def test_others_have_their_turn_while_a_long_expression_is_compiled(harness: Harness) -> None:
    client = harness.connect()
    data = encode(where("a", LONG_TEXT), MQTT_5)
    turns = 0
    while harness.broker.receive(client.client, data, harness.instant):
        data = b""
        turns += 1
        harness.settle()
        assert (client.inbox == []) == (turns < 4)
    assert turns == 4
    assert isinstance(client.take()[0], SubAck)
    harness.publish("a", b'{"a7":7}')
    assert topics(client.take()) == ["a"]
