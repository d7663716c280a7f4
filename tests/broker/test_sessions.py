from dataclasses import replace

import pytest

from gateway.mqtt.packets import MQTT_3_1_1, MQTT_5, ConnAck, Connect, Disconnect, PubAck
from gateway.mqtt.properties import Properties
from gateway.mqtt.reason_codes import ReasonCode
from gateway.settings.broker import NEVER, BrokerSettings
from tests.support.broker.broker_harness import UNSHARED, Harness
from tests.support.broker.payloads import payloads

VERSIONS = (MQTT_3_1_1, MQTT_5)


def test_a_session_whose_time_was_up_is_not_resumed_before_the_timer_has_run(
    harness: Harness,
) -> None:
    harness.persistent().drop()
    harness.now += 3599  # as on a machine that stood still
    again = harness.persistent()
    assert again.connack.session_present
    again.drop()
    harness.now += 3600
    assert not harness.persistent().connack.session_present
    assert harness.counters.count("clients/expired") == 1


def test_expired_sessions_are_counted(harness: Harness) -> None:
    harness.connect("a", session_expiry=10).drop()
    harness.connect("b", session_expiry=10).send(
        Disconnect(properties=Properties(session_expiry_interval=0))
    )
    harness.connect("c").drop()
    harness.pass_time(10)
    assert harness.counters.count("clients/expired") == 1


LIMITED = BrokerSettings(maximum_session_expiry=20)


def test_the_limit_holds_for_mqtt_3_1_1_and_at_disconnect() -> None:
    harness = Harness(LIMITED)
    harness.persistent("old", MQTT_3_1_1).drop()
    client = harness.connect("new", session_expiry=10)
    client.send(Disconnect(properties=Properties(session_expiry_interval=NEVER)))
    assert client.closed()
    harness.pass_time(19.9)
    assert set(harness.broker.sessions) == {"old", "new"}
    harness.pass_time(0.1)
    assert not harness.broker.sessions


def test_sessions_may_be_forbidden_to_last() -> None:
    harness = Harness(BrokerSettings(maximum_session_expiry=0))
    client = harness.connect(session_expiry=10)
    assert client.connack.properties.session_expiry_interval == 0
    client.send(Disconnect(properties=Properties(session_expiry_interval=5)))
    assert not client.take()
    assert not harness.broker.sessions


@pytest.fixture
def crowded() -> Harness:
    """Give a broker that has its two persistent sessions, one of them connected."""
    harness = Harness(replace(UNSHARED, maximum_persistent_sessions=2))
    harness.persistent("a")
    harness.persistent("b", MQTT_3_1_1).drop()
    return harness


@pytest.mark.parametrize("version", VERSIONS)
def test_the_number_of_persistent_sessions_is_bounded(crowded: Harness, version: int) -> None:
    client = crowded.open(version)
    expiry = 5 if version == MQTT_5 else None
    properties = Properties(session_expiry_interval=expiry)
    client.send(Connect("c", version, clean_start=False, properties=properties))
    connack = client.take_only(ConnAck)
    full = ReasonCode.QUOTA_EXCEEDED if version == MQTT_5 else ReasonCode.SERVER_UNAVAILABLE
    assert connack.reason_code == full
    assert client.closed()
    assert crowded.counters.count("tidegate/sessions/rejected") == 1


def test_what_does_not_add_a_persistent_session_is_accepted(crowded: Harness) -> None:
    crowded.connect("c")
    crowded.persistent("b")
    crowded.persistent("a", clean_start=True)
    assert crowded.broker.shares.sessions.total == 2


@pytest.mark.parametrize("how", ["expiry", "disconnect", "clean start", "shortened"])
def test_the_end_of_a_persistent_session_makes_room(crowded: Harness, how: str) -> None:
    client = crowded.persistent("b")
    if how == "expiry":
        client.drop()
        crowded.pass_time(3600)
    elif how == "disconnect":
        client.send(Disconnect(properties=Properties(session_expiry_interval=0)))
    elif how == "clean start":
        crowded.connect("b")
    else:
        crowded.connect("b", clean_start=False)
    assert crowded.broker.shares.sessions.total == 1
    crowded.persistent("c")


def test_qos_0_does_not_overtake_what_is_sent_again(harness: Harness) -> None:
    first = harness.persistent(receive_maximum=2)
    first.subscribe("a", 1)
    for number in range(2):
        harness.publish("a", b"%d" % number, qos=1)
    first.drop()
    second = harness.persistent(receive_maximum=1)
    harness.publish("a", b"2")
    assert payloads(second.take()) == [b"0"]
    second.send(PubAck(1))
    assert payloads(second.take()) == [b"1", b"2"]


def test_what_is_too_large_for_the_new_connection_is_given_up(harness: Harness) -> None:
    first = harness.persistent()
    first.subscribe("a", 1)
    harness.publish("a", b"x" * 100, qos=1)
    harness.publish("a", b"2", qos=1)
    first.drop()
    assert payloads(harness.persistent(maximum_packet_size=90).take()) == [b"2"]
    assert len(harness.session().inflight) == 1
    assert harness.counters.count("publish/messages/dropped") == 1
