"""What a listener says of a connection, and how the broker goes by it."""

import logging

import pytest

from gateway.broker.broker import SIGN_OF_LIFE
from gateway.broker.connecting.connection_info import ConnectionInfo
from gateway.mqtt.codec.packet_codec import encode
from gateway.mqtt.packets import (
    MQTT_3_1,
    MQTT_3_1_1,
    MQTT_5,
    ConnAck,
    Connect,
    Disconnect,
    PingReq,
    PingResp,
    Publish,
)
from gateway.mqtt.reason_codes import ReasonCode
from gateway.settings.broker import BrokerSettings
from tests.support.broker.broker_harness import Harness
from tests.support.broker.users import Users
from tests.support.versions import VERSIONS

FULL = "the listener holds its 3 connections"


# --- no room --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "code"),
    [
        (MQTT_3_1, ReasonCode.SERVER_UNAVAILABLE),
        (MQTT_3_1_1, ReasonCode.SERVER_UNAVAILABLE),
        (MQTT_5, ReasonCode.QUOTA_EXCEEDED),
    ],
)
def test_a_client_for_whom_there_is_no_room_is_told(
    harness: Harness, version: int, code: ReasonCode
) -> None:
    client = harness.open(version, info=ConnectionInfo(refusal=FULL))
    client.send(Connect("c", version))
    connack = client.take_only(ConnAck)
    assert connack.reason_code == code
    assert connack.properties.reason_string == (FULL if version == MQTT_5 else None)
    assert client.closed()
    assert not harness.broker.sessions
    assert harness.counters.count("tidegate/clients/refused") == 1


def test_no_room_is_said_before_anything_is_taken_over(harness: Harness) -> None:
    first = harness.connect("c")
    harness.open(info=ConnectionInfo(refusal=FULL)).send(Connect("c"))
    first.send(PingReq())
    assert first.take() == [PingResp()]


# --- whom a certificate names ---------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("username", [None, "bert"])
def test_the_certificate_says_who_the_client_is(
    harness: Harness, version: int, username: str | None
) -> None:
    harness.connect(
        "c", version, authenticator=Users(), info=ConnectionInfo(username="anna"), username=username
    )
    assert harness.session().username == "anna"


def test_without_a_name_in_the_certificate_the_listener_decides(harness: Harness) -> None:
    client = harness.open(authenticator=Users(), info=ConnectionInfo())
    client.send(Connect("c", username="anna"))
    harness.pass_time(1.0)
    assert client.take_only(ConnAck).reason_code == ReasonCode.BAD_USER_NAME_OR_PASSWORD


# --- limits of one listener -----------------------------------------------------------------


def test_a_listener_s_packet_size_is_told_and_kept(harness: Harness) -> None:
    client = harness.connect("c", info=ConnectionInfo(maximum_packet_size=1_024))
    other = harness.connect("other")
    assert client.connack.properties.maximum_packet_size == 1_024
    assert (
        other.connack.properties.maximum_packet_size == harness.broker.settings.maximum_packet_size
    )
    large = Publish("a", bytes(1_024))
    other.send(large)
    assert not other.closed()
    client.send(Publish("a", bytes(1_024 - len(encode(Publish("a"), MQTT_5)) - 1)))
    assert not client.closed()
    client.send(large)
    assert client.take_only(Disconnect).reason_code == ReasonCode.PACKET_TOO_LARGE
    assert client.closed()


@pytest.mark.parametrize(
    ("version", "asked", "expected", "silence"),
    [
        (MQTT_5, 0, 60, 90),
        (MQTT_5, 61, 60, 90),
        (MQTT_5, 65_535, 60, 90),
        (MQTT_5, 60, None, 90),
        (MQTT_5, 10, None, 15),
        (MQTT_3_1_1, 100, None, 150),  # it cannot be told
        (MQTT_3_1_1, 10, None, 15),
    ],
)
def test_the_longest_keep_alive(
    harness: Harness, version: int, asked: int, expected: int | None, silence: int
) -> None:
    info = ConnectionInfo(maximum_keep_alive=60)
    client = harness.connect("c", version, keep_alive=asked, info=info)
    assert client.connack.properties.server_keep_alive == expected
    harness.pass_time(silence - 1)
    assert not client.closed()
    harness.pass_time(1)
    assert client.closed()


def test_keep_alive_0_of_mqtt_3_1_1_stays_without_end(harness: Harness) -> None:
    info = ConnectionInfo(maximum_keep_alive=60)
    client = harness.connect("c", MQTT_3_1_1, keep_alive=0, info=info)
    harness.pass_time(1_000_000)
    assert not client.closed()


# --- deadlines ------------------------------------------------------------------------------


def test_connect_is_awaited_from_the_beginning_of_the_connection(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    harness = Harness(BrokerSettings(connect_timeout=10))
    client = harness.open(info=ConnectionInfo(opened=harness.now - 8))  # in which it did TLS
    harness.pass_time(1.9)
    assert not client.closed()
    harness.pass_time(0.1)
    assert client.closed()
    assert harness.counters.count("tidegate/connections/connect_timeouts") == 1
    assert caplog.messages == ["closing client 192.0.2.7:40000: no CONNECT within 10 s"]


def test_a_byte_at_a_time_does_not_put_off_the_end() -> None:
    harness = Harness(BrokerSettings(connect_timeout=10))
    client = harness.open()
    for byte in encode(Connect("c" * 20), MQTT_5)[:9]:
        client.send_bytes(bytes([byte]))
        harness.pass_time(1)
    assert not client.closed()
    harness.pass_time(1)
    assert client.closed()


def test_a_refused_client_that_does_not_read_is_not_awaited_again(harness: Harness) -> None:
    client = harness.open(info=ConnectionInfo(refusal=FULL))
    client.reads = False
    client.send(Connect("c"))
    harness.pass_time(harness.broker.settings.connect_timeout)
    assert harness.counters.count("tidegate/connections/connect_timeouts") == 0


def test_a_packet_that_trickles_is_no_sign_of_life(harness: Harness) -> None:
    client = harness.connect(keep_alive=10)
    packet = encode(Publish("a", bytes(100)), MQTT_5)
    for byte in packet[:14]:
        client.send_bytes(bytes([byte]))
        harness.pass_time(1)
    assert not client.closed()
    harness.pass_time(1)
    assert client.closed()


def test_a_large_packet_may_take_longer_than_keep_alive(harness: Harness) -> None:
    client = harness.connect(keep_alive=10)
    data = encode(Publish("a", bytes(10 * SIGN_OF_LIFE)), MQTT_5)
    for start in range(0, len(data), SIGN_OF_LIFE):
        harness.pass_time(14)
        client.send_bytes(data[start : start + SIGN_OF_LIFE])
    assert not client.closed()
    assert harness.broker.traffic.messages_received == 1


def test_what_a_stranger_sends_is_logged_without_alarm(
    harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    harness.open().send_bytes(b"\x16\x03\x01\x02\x00\x01\x00\x01")  # TLS at a plain port
    (record,) = caplog.records
    assert record.levelno == logging.INFO
