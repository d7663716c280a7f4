"""The log says who came and went, many of them in one record."""

import logging

import pytest

from gateway.broker.connecting import connection_lines
from gateway.broker.connecting.connection_lines import (
    AT_ONCE,
    LINES_OF_CLIENT,
    LINES_OF_HOST,
    PERIOD_SECONDS,
)
from gateway.broker.notices import CLOSED_BY_PEER
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
    reported = [
        line for message in caplog.messages for line in message.split("\n") if " ended " in line
    ]
    where = "at 192.0.2.7:40000 ended after"
    assert reported == [
        "client 'leaves' of user 'anna' at 192.0.2.7:40000 ended after 0.0 s: DISCONNECT",
        f"client 'dropped' {where} 12.5 s: {CLOSED_BY_PEER}",
        f"client 'taken' {where} 12.5 s: another connection has this client id (0x8E)",
        f"client 'faulty' {where} 12.5 s: {FAULT} (0x81)",
        f"client 'silent' {where} 103.5 s: nothing received for 90.0 s (0x8D)",
    ]


def lines(harness: Harness, caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the lines since the last call."""
    harness.broker.connection_lines.write()
    found = [line for message in caplog.messages for line in message.split("\n") if line]
    caplog.clear()
    return found


def test_a_client_that_comes_and_goes_has_a_line_for_each_period(
    harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    stays = harness.connect("stays")
    found = []
    for _ in range(60 * 24):
        harness.connect("flaps").send(Disconnect())
        harness.pass_time(60)
        found += [line for line in lines(harness, caplog) if "flaps" in line]
    periods = 60 * 24 * 60 // PERIOD_SECONDS
    assert 2 * LINES_OF_CLIENT + periods - 1 <= len(found) <= 2 * LINES_OF_CLIENT + periods
    assert found[-1] == (
        "client 'flaps' connected 10 more times within 10 minutes; the last ended after 0.0 s:"
        " DISCONNECT"
    )
    stays.drop()
    (line,) = lines(harness, caplog)
    assert line.startswith("client 'stays' at ")


def test_one_that_has_been_quiet_for_a_period_has_lines_again(
    harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    for _ in range(LINES_OF_CLIENT):
        harness.connect("a").drop()
    assert len(lines(harness, caplog)) == 2 * LINES_OF_CLIENT
    harness.pass_time(PERIOD_SECONDS)
    harness.connect("a").drop()
    assert len(lines(harness, caplog)) == 2


def test_a_host_whose_programs_take_new_identifiers_is_summed_up(
    harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    for number in range(LINES_OF_HOST + 7):
        harness.connect(f"program-{number}").drop()
    assert len(lines(harness, caplog)) == 2 * LINES_OF_HOST
    harness.pass_time(PERIOD_SECONDS)
    harness.connect("next")
    found = lines(harness, caplog)
    assert found[0].startswith(
        "host '192.0.2.7' connected 7 more times within 10 minutes; the last"
    )


def test_more_clients_than_are_counted(
    harness: Harness, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_lines, "MAXIMUM_COUNTED", 2)
    caplog.set_level(logging.INFO)
    for _ in range(LINES_OF_CLIENT + 1):
        harness.connect("a")  # ends the one before, which is told of as what another took over
    for name in "bcd":  # whose counts take the place of the first
        harness.connect(name)
    found = lines(harness, caplog)
    assert sum("'a' connected from" in line for line in found) == LINES_OF_CLIENT
    assert sum("'a' connected 1 more times" in line for line in found) == 1
    assert "the last ended not yet" in "".join(found)
