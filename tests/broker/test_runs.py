from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.broker.runs import pass_on_again, pass_on_alone
from gateway.mqtt.encode import encode
from gateway.mqtt.packets import (
    MQTT_3_1_1,
    MQTT_5,
    Disconnect,
    Publish,
    SubscriptionRequest,
    Unsubscribe,
)
from gateway.mqtt.properties import Properties
from gateway.mqtt.reason_codes import ReasonCode
from tests.support.broker_harness import Harness
from tests.support.payloads import payloads
from tests.support.runs import send
from tests.support.versions import VERSIONS

RUNS = "gateway.broker.broker.pass_on"


@pytest.mark.parametrize("version", VERSIONS)
def test_packets_of_one_topic_go_out_as_they_came(version: int, passed_on: list[bool]) -> None:
    harness = Harness()
    first, second = (harness.connect(name, version) for name in ("first", "second"))
    first.subscribe("a/#")
    second.subscribe("a/b", 2)
    publisher = harness.connect("publisher", version)
    send(publisher, 100)
    expected = [b"%03d" % number for number in range(100)]
    assert payloads(first.take()) == payloads(second.take()) == expected
    assert passed_on == [True]
    traffic = harness.broker.traffic
    assert (traffic.messages_received, traffic.messages_sent) == (100, 200)
    assert (traffic.bytes_received, traffic.bytes_sent) == (300, 600)
    assert harness.broker.packets() == (100 + 3 + 2, 200 + 3 + 2)


@pytest.fixture(params=["alone", "again"])
def again(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Give for each read whether `pass_on_alone` or `pass_on_again` passed it on.

    Once with and once without the former: whatever it takes, the latter takes too.
    """
    answers: list[bool] = []

    def alone(*arguments: Any) -> bool:
        passed = request.param == "alone" and pass_on_alone(*arguments)
        if passed:
            answers.append(True)
        return passed

    def noting(broker: Any, client: Any, instant: Any) -> bool:
        known = client.last_topic is not None
        passed = pass_on_again(broker, client, instant)
        if known:
            answers.append(passed)
        return passed

    monkeypatch.setattr("gateway.broker.broker.pass_on_alone", alone)
    monkeypatch.setattr("gateway.broker.broker.pass_on_again", noting)
    return answers


@pytest.mark.parametrize("version", [MQTT_3_1_1, MQTT_5])
def test_the_topic_of_the_last_run_is_known(
    version: int, passed_on: list[bool], again: list[bool]
) -> None:
    harness = Harness()
    clients = [harness.connect(name, each) for name, each in (("a", MQTT_3_1_1), ("b", MQTT_5))]
    for client in clients:
        client.subscribe("a/b")
    publisher = harness.connect("publisher", version)
    expected = [b"one", b"of another length", b"", b"x" * 1_000, b"more", b"than one"]
    for payload in expected[:4]:
        publisher.send(Publish("a/b", payload))
    publisher.send(*(Publish("a/b", payload) for payload in expected[4:]))
    assert [payloads(client.take()) for client in clients] == [expected, expected]
    assert (passed_on, again) == ([True], [True] * 4)
    traffic = harness.broker.traffic
    size = sum(map(len, expected))
    assert (traffic.messages_received, traffic.messages_sent) == (6, 12)
    assert (traffic.bytes_received, traffic.bytes_sent) == (size, 2 * size)
    assert publisher.client.connection.packets_received == 1 + 6


DIFFERENT = {
    "another topic": Publish("a/c", b"1"),
    "its beginning": Publish("a", b"1"),
    "QoS 1": Publish("a/b", b"1", 1, packet_id=1),
    "retained": Publish("a/b", b"1", retain=True),
    "properties": Publish("a/b", b"1", properties=Properties(content_type="x")),
}


@pytest.mark.parametrize("packet", DIFFERENT.values(), ids=DIFFERENT)
def test_what_is_not_like_the_last_run_is_looked_at(packet: Publish, again: list[bool]) -> None:
    harness = Harness()
    subscriber = harness.connect("subscriber")
    subscriber.subscribe("#", 1)
    publisher = harness.connect("publisher")
    publisher.send(Publish("a/b", b"0"))
    publisher.send(packet)
    publisher.send(Publish("a/b", b"2"))
    assert payloads(subscriber.take()) == [b"0", b"1", b"2"]
    assert not again[0]


def test_who_gets_it_is_looked_up_each_time(again: list[bool]) -> None:
    harness = Harness()
    publisher = harness.connect("publisher")
    publisher.send(Publish("a/b", b"1"))
    subscriber = harness.connect("subscriber")
    subscriber.subscribe("a/b")
    publisher.send(Publish("a/b", b"2"))
    assert payloads(subscriber.take()) == [b"2"]
    filtered = harness.connect("filtered")
    filtered.subscribe_all([SubscriptionRequest("a/b", 0)], where="payload = 3")
    publisher.send(Publish("a/b", b"3"))
    publisher.send(Publish("a/b", b"4"))
    assert payloads(subscriber.take()) == [b"3", b"4"]
    assert payloads(filtered.take()) == [b"3"]
    filtered.drop()
    identified = harness.connect("identified")
    identified.subscribe_all([SubscriptionRequest("a/b", 0)], identifier=7)
    publisher.send(Publish("a/b", b"5"))
    (packet,) = identified.take()
    assert isinstance(packet, Publish)
    assert packet.properties.subscription_identifiers == (7,)
    assert again == [True, False, False, False]


def test_a_packet_above_a_receiver_s_maximum_is_not_passed_on_again(again: list[bool]) -> None:
    harness = Harness()
    subscriber = harness.connect("small", properties=Properties(maximum_packet_size=100))
    subscriber.subscribe("a/b")
    publisher = harness.connect("publisher")
    for size in (1, 200, 2):
        publisher.send(Publish("a/b", b"x" * size))
    assert [len(payload) for payload in payloads(subscriber.take())] == [1, 2]
    assert again == [False, True]


def test_who_alone_gets_a_topic_is_known_but_asked_each_time() -> None:
    harness = Harness()
    subscriber = harness.connect("small", properties=Properties(maximum_packet_size=100))
    subscriber.subscribe("a/b")
    publisher = harness.connect("publisher")
    for size in (1, 2, 3, 200, 4):
        publisher.send(Publish("a/b", b"x" * size))
    assert [len(payload) for payload in payloads(subscriber.take())] == [1, 2, 3, 4]
    assert harness.broker.router.routes.values()["hits"] == 7
    other = harness.connect("other")
    other.subscribe("a/b")
    publisher.send(Publish("a/b", b"to both"))
    publisher.send(Publish("a/b", b"again"))
    other.send(Unsubscribe(2, ["a/b"]))
    publisher.send(Publish("a/b", b"to one"))
    assert payloads(subscriber.take()) == [b"to both", b"again", b"to one"]
    other.take()
    publisher.send(Publish("a/c", b"to nobody"))
    publisher.send(Publish("a/c", b"to nobody"))
    assert not subscriber.take()
    assert not other.take()


def test_one_packet_alone_is_passed_on_without_looking_further(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers: list[bool] = []

    def noting(*arguments: Any) -> bool:
        answers.append(pass_on_alone(*arguments))
        return answers[-1]

    monkeypatch.setattr("gateway.broker.broker.pass_on_alone", noting)
    harness = Harness()
    subscriber = harness.connect("subscriber")
    subscriber.subscribe("a/b")
    publisher = harness.connect("publisher")
    one = encode(Publish("a/b", b"x" * 200), MQTT_5)
    for data in (one, one, one + one, one[:-1], one[-1:], one):
        publisher.send_bytes(data)
    assert payloads(subscriber.take()) == [b"x" * 200] * 6
    assert answers == [True, False, False, False, True]
    assert harness.broker.traffic.network_received > 6 * len(one)


@pytest.mark.parametrize("before", [b"", encode(Publish("a/b", b"1"), MQTT_5)])
def test_what_is_malformed_behind_a_run_ends_the_connection(before: bytes) -> None:
    harness = Harness()
    subscriber = harness.connect("subscriber")
    subscriber.subscribe("a/b")
    publisher = harness.connect("publisher")
    publisher.send(Publish("a/b", b"0"))
    publisher.send_bytes(before + b"\x30\xff\xff\xff\xff\x01")
    (disconnect,) = publisher.take()
    assert isinstance(disconnect, Disconnect)
    assert disconnect.reason_code == ReasonCode.MALFORMED_PACKET
    assert publisher.closed()
    assert payloads(subscriber.take()) == ([b"0", b"1"] if before else [b"0"])


PIECES = st.builds(
    Publish,
    st.sampled_from(["a/b", "a/c", "b", "x"]),
    st.one_of(st.sampled_from([b"", b"1", b"22", b"200"]), st.binary(max_size=200)),
    st.sampled_from([0, 0, 0, 1]),
    st.sampled_from([False, False, False, True]),
)


@given(st.lists(st.tuples(PIECES, st.integers(1, 4)), max_size=15), st.integers(1, 300), st.data())
def test_everyone_gets_the_same_as_without_runs(
    pieces: list[tuple[Publish, int]], chunk: int, data: st.DataObject
) -> None:
    version = data.draw(st.sampled_from([MQTT_3_1_1, MQTT_5]))
    stream = b"".join(
        encode(
            Publish(
                one.topic, one.payload, one.qos, one.retain, packet_id=number if one.qos else 0
            ),
            version,
        )
        * (1 if one.qos else times)
        for number, (one, times) in enumerate(pieces, 1)
    )
    filters = data.draw(
        st.lists(
            st.tuples(st.sampled_from(["a/b", "a/+", "#", "b"]), st.sampled_from([4, 5])),
            max_size=4,
        )
    )

    def heard() -> tuple[list[list[object]], tuple[int, int]]:
        harness = Harness()
        clients = []
        for place, (topic_filter, each) in enumerate(filters):
            clients.append(harness.connect(f"c{place}", each))
            clients[-1].subscribe(topic_filter, 1)
        publisher = harness.connect("publisher", version)
        for start in range(0, len(stream), chunk):
            publisher.send_bytes(stream[start : start + chunk])
        traffic = harness.broker.traffic
        figures = traffic.messages_received, traffic.bytes_sent
        return [list(client.take()) for client in clients], figures

    with_runs = heard()
    with mock.patch(RUNS, return_value=False):
        assert heard() == with_runs
