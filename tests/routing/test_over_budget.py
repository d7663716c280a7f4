"""Whoever has a filter that would have cost too much is told, and not too often."""

import pytest

from gateway.mqtt.message import Message
from gateway.routing.over_budget import LINES, WARNING_SECONDS, OverBudget

MESSAGE = Message("a/b", b"x" * 10)


def test_the_log_names_owner_message_bound_and_expression(caplog: pytest.LogCaptureFixture) -> None:
    over = OverBudget()
    over.note("client 'c'", "one may not cost so much", "a\n= 1", MESSAGE, 5.0)
    (line,) = caplog.messages
    assert line == (
        "client 'c': a filter is NULL for a message of 10 bytes on 'a/b': one may not cost so much"
        " (0 more since the last line): a = 1"
    )


def test_an_owner_is_reported_once_in_a_while(caplog: pytest.LogCaptureFixture) -> None:
    over = OverBudget()
    for _ in range(3):
        over.note("c", "", "a", MESSAGE, 5.0)
    over.note("d", "", "a", MESSAGE, 5.0)
    assert [line[:1] for line in caplog.messages] == ["c", "d"]
    assert "(2 more" in caplog.messages[1]
    over.note("c", "", "a", MESSAGE, 5.0 + WARNING_SECONDS)
    assert len(caplog.messages) == 3
    assert over.count == 5


def test_and_not_too_many_owners(caplog: pytest.LogCaptureFixture) -> None:
    over = OverBudget()
    for number in range(2 * LINES):
        over.note(f"client {number}", "", "a", MESSAGE, 5.0)
    assert len(caplog.messages) == LINES
    over.note("c", "", "a", MESSAGE, 5.0 + WARNING_SECONDS)
    assert f"({LINES} more" in caplog.messages[-1]
