"""Each kind of traffic for a moment: nothing may be lost, doubled, out of order or misrouted."""

import shutil

import pytest

from bench.harness import builds
from bench.harness.brokers import Broker, mosquitto, tidegate
from bench.harness.errors import MeasurementError
from bench.harness.figures import METRICS, WRONG
from bench.harness.scenario import Settings
from bench.real_traffic.kinds import KINDS

pytestmark = pytest.mark.skipif(
    shutil.which("cc") is None or shutil.which("taskset") is None,
    reason="needs a C compiler and taskset: sudo apt-get install -y gcc util-linux",
)

MOMENT, LONGER = 0.1, 0.4
"""Seconds of a kind, and of one with fixed times: beside others its first message may come late."""

PACED = ("A_paced", "B_paced", "C")
DELAYS = ("p50_us", "p99_us")  # which are not taken so early
PEERS = {"B": 4, "F": 5, "H": 4}
"""Kinds that Mosquitto does, too, with the version of MQTT: a flood, sessions, short visits."""


def check(broker: Broker, kind: str, version: int) -> None:
    seconds = LONGER if kind in PACED else MOMENT
    figures = KINDS[kind].measure(broker, Settings(version, seconds))
    assert figures["checked"] > 0
    assert {name: figures[name] for name in WRONG} == dict.fromkeys(WRONG, 0)
    costs = [name for name in KINDS[kind].shown if name not in DELAYS]
    assert all(figures[name] > 0 for name in costs)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_gateway_does_every_kind(kind: str) -> None:
    check(tidegate("tidegate", builds.ROOT), kind, KINDS[kind].versions[-1])


@pytest.mark.mosquitto
@pytest.mark.parametrize(("kind", "version"), PEERS.items())
def test_mosquitto_does_what_a_gateway_does(kind: str, version: int) -> None:
    try:
        check(mosquitto(), kind, version)
    except MeasurementError as missing:
        pytest.skip(str(missing))


def test_every_kind_shows_figures_that_have_a_form() -> None:
    assert all(name in METRICS for kind in KINDS.values() for name in kind.shown)
