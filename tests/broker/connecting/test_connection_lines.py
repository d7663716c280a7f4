"""The log says who came and went, many of them in one record."""

import logging

import pytest

from gateway.broker.connecting.connection_lines import AT_ONCE, CLOSED_BY_PEER
from gateway.mqtt.packets import Disconnect
from tests.support.broker.broker_harness import Harness
from tests.support.versions import VERSIONS

FAULT = "first byte 0x00: a reserved packet type, or flags that it cannot have"


def test_connecting_is_logged_with_the_version(
    harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    for client_id, version in zip("abc", VERSIONS, strict=True):
        harness.connect(client_id, version)
    assert caplog.messages == []
    harness.broker.connection_lines.write()
    (lines,) = caplog.messages
    assert lines.split("\n") == [
        "client 'a' connected from 192.0.2.7:40000 (MQTT 3.1)",
        "client 'b' connected from 192.0.2.7:40000 (MQTT 3.1.1)",
        "client 'c' connected from 192.0.2.7:40000 (MQTT 5)",
    ]


def test_a_line_that_nobody_wants_is_not_kept(
    harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "gateway.broker.connecting.connection_lines")
    harness.connect("a")
    harness.broker.connection_lines.write()
    assert caplog.messages == []
    assert harness.broker.connection_lines.waiting == []


def test_a_turn_without_end_holds_back_so_many_lines(
    harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    for number in range(AT_ONCE // 2 - 1):
        harness.connect(f"c{number}").drop()
    harness.connect("last but one")
    assert not caplog.messages
    harness.connect("last")
    (lines,) = caplog.messages
    assert lines.count("\n") + 1 == AT_ONCE
    assert harness.broker.connection_lines.waiting == []


def test_the_end_of_a_connection_is_logged_with_who_why_and_for_how_long(
    harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    harness.connect("leaves", username="anna").send(Disconnect())
    dropped = harness.connect("dropped")
    silent = harness.connect("silent", keep_alive=60)
    taken = harness.connect("taken")
    faulty = harness.connect("faulty")
    harness.broker.connection_lines.write()
    harness.pass_time(12.5)
    dropped.drop()
    harness.connect("taken")
    faulty.send_bytes(b"\x00\x00")
    harness.pass_time(91)
    assert taken.closed()
    assert faulty.closed()
    assert silent.closed()
    harness.broker.connection_lines.write()
    told = [
        line for message in caplog.messages for line in message.split("\n") if " ended " in line
    ]
    where = "at 192.0.2.7:40000 ended after"
    assert told == [
        "client 'leaves' of user 'anna' at 192.0.2.7:40000 ended after 0.0 s: DISCONNECT",
        f"client 'dropped' {where} 12.5 s: {CLOSED_BY_PEER}",
        f"client 'taken' {where} 12.5 s: another connection has this client id (0x8E)",
        f"client 'faulty' {where} 12.5 s: {FAULT} (0x81)",
        f"client 'silent' {where} 103.5 s: nothing received for 90.0 s (0x8D)",
    ]
