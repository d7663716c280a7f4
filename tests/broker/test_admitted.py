"""Who was let in is told of in one log line for many."""

import logging

import pytest

from gateway.broker.connack import ADMITTED, tell_admitted
from tests.support.broker_harness import Harness
from tests.support.versions import VERSIONS


def test_connecting_is_logged_with_the_version(
    harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    for client_id, version in zip("abc", VERSIONS, strict=True):
        harness.connect(client_id, version)
    assert caplog.messages == []
    tell_admitted(harness.broker)
    (lines,) = caplog.messages
    assert lines.split("\n") == [
        "client 'a' connected from 192.0.2.7:40000 (MQTT 3.1)",
        "client 'b' connected from 192.0.2.7:40000 (MQTT 3.1.1)",
        "client 'c' connected from 192.0.2.7:40000 (MQTT 5)",
    ]


def test_a_line_that_nobody_wants_is_not_kept(
    harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "gateway.broker.connack")
    harness.connect("a")
    tell_admitted(harness.broker)
    assert caplog.messages == []
    assert harness.broker.admitted == []


def test_a_turn_without_end_holds_back_so_many_lines(
    harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    for number in range(ADMITTED - 1):
        harness.connect(f"c{number}").drop()
    assert not caplog.messages
    harness.connect("last")
    (lines,) = caplog.messages
    assert lines.count("\n") + 1 == ADMITTED
    assert harness.broker.admitted == []
