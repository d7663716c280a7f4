"""The gateway's clock is the computer's."""

import time

from gateway.clock import Clock


def test_wall_time_is_whole_milliseconds_since_1970() -> None:
    before = time.time()
    now = Clock().wall_ms()
    assert before * 1000 - 1 <= now <= time.time() * 1000 + 1
    assert isinstance(now, int)


def test_monotonic_time_never_goes_back() -> None:
    clock = Clock()
    assert clock.monotonic() <= clock.monotonic()
