"""The node's clock on a board whose ticks wrap."""

import time

import pytest
from node.uptime import Uptime

WRAP = 1 << 30


def test_it_goes_on_when_the_ticks_wrap(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [WRAP - 100]
    monkeypatch.setattr(time, "ticks_ms", lambda: now[0], raising=False)
    monkeypatch.setattr(
        time,
        "ticks_diff",
        lambda later, earlier: (later - earlier + WRAP // 2) % WRAP - WRAP // 2,
        raising=False,
    )
    uptime = Uptime()
    assert uptime.ms() == 0
    now[0] = 400
    assert uptime.ms() == 500
    now[0] = WRAP // 2
    assert uptime.ms() == WRAP // 2 + 100
