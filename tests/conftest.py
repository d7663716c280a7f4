"""Hypothesis profiles, which build is tested, and what to do about tools that are missing."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.support.compiled import not_compiled, stale
from tests.support.processes.mosquitto import Mosquitto
from tests.support.requirements import LeftOut
from tests.support.side_by_side import SideBySide

# No deadline: the machine may be a small board, and busy.
settings.register_profile("dev", max_examples=50, stateful_step_count=30, deadline=None)
LONG = settings(
    stateful_step_count=100,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
# The same examples each time: a change is judged by what it changes. `dev` tries new ones.
settings.register_profile(
    "ci",
    settings.get_profile("dev"),
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("deep", LONG, max_examples=500)
settings.register_profile("fuzz", LONG, max_examples=50_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))


def pytest_configure(config: pytest.Config) -> None:
    # A shell has what it starts in the background ignore it, and so what tests start and interrupt.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if outdated := stale():
        listed = ", ".join(path.name for path in outdated)
        raise pytest.UsageError(
            f"`make compile`, or remove what is older than its source: {listed}"
        )
    if os.environ.get("TIDEGATE_CYTHON") == "require" and (plain := not_compiled()):
        raise pytest.UsageError(f"TIDEGATE_CYTHON=require, but not compiled: {', '.join(plain)}")
    config.pluginmanager.register(LeftOut(config), "left-out")
    config.pluginmanager.register(SideBySide(config), "side-by-side")


@pytest.fixture
def mosquitto(tmp_path: Path) -> Iterator[Mosquitto]:
    """Give a running Mosquitto that lets anybody in."""
    broker = Mosquitto(tmp_path)
    broker.start()
    yield broker
    broker.kill()
