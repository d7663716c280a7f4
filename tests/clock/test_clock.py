"""The gateway's clock is the computer's."""

import time
from pathlib import Path
from uuid import UUID

from gateway.clock import Clock


def test_wall_time_is_whole_milliseconds_since_1970() -> None:
    before = time.time()
    now = Clock().wall_ms()
    assert before * 1000 - 1 <= now <= time.time() * 1000 + 1
    assert isinstance(now, int)


def test_monotonic_time_never_goes_back() -> None:
    clock = Clock()
    assert clock.monotonic() <= clock.monotonic()


def test_uptime_is_that_of_the_board() -> None:
    seconds = float(Path("/proc/uptime").read_text().split()[0])
    assert 0 <= Clock().uptime_ms() / 1000 - seconds < 5


def test_a_boot_has_one_name() -> None:
    assert Clock().boot_id() == Clock().boot_id() == UUID(Clock().boot_id()).urn[9:]
