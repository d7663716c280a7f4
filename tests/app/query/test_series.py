"""The course of figures: what a step is the mean of, gaps, bounds, and what an answer holds."""

from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from gateway.app.query.series import RINGS, Ring, Series
from gateway.config.load import bare
from tests.support.clocks import ManualClock
from tests.support.gateway_here import Gateway
from tests.support.operator import Operator
from tests.support.ports import free_port


def test_a_step_is_the_mean_of_its_seconds() -> None:
    ring = Ring(10, 5, 2)
    for second in range(25):
        ring.add(second, [float(second), 1.0])
    assert ring.course(0, 2) == [4.5, 14.5]
    assert ring.course(1, 4) == [None, None, 1.0, 1.0]


def test_a_gap_is_not_known_and_the_oldest_go() -> None:
    ring = Ring(1, 4, 1)
    for second in (0, 1, 2, 3, 4):
        ring.add(second, [float(second)])
    assert ring.course(0, 3) == [1, 2, 3]
    ring.add(6, [6.0])
    ring.add(7, [7.0])
    assert ring.course(0, 3) == [4, None, 6]
    ring.add(1_000, [8.0])
    ring.add(1_001, [9.0])
    assert ring.course(0, 3) == [None, None, 8]


def test_all_rings_take_at_most_317_kib() -> None:
    rings = [Ring(step, size, 26) for step, size in RINGS.items()]
    assert not any(ring._values for ring in rings)  # they grow
    for ring, size in zip(rings, RINGS.values(), strict=True):
        for at in range(2 * size):
            ring.add(at * ring.step, [0.0] * 26)
    assert sum(len(ring._values) * ring._values.itemsize for ring in rings) == 317 * 1024 - 128


async def test_rates_are_of_the_time_that_has_passed(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        gateway = Gateway(bare(free_port()), tmp_path / "data", stack)
        clock = gateway.clock = ManualClock()
        await gateway.start()
        series = Series(gateway, gateway.core)
        assert len(series.names) == 26
        index = series.names.index("refused")
        ring = series.rings[1]
        for count, seconds in ((10, 1), (10, 2), (100, 10), (0, 0.25), (5, 1)):
            gateway.counters.add("tidegate/clients/refused", count)
            clock.step(seconds)
            series.sample()
        clock.step(1)
        series.sample()
        assert ring.course(index, 14) == [10, 5, 5, *[None] * 9, 10, pytest.approx(4)]


async def test_the_query_gives_figures_at_a_step(gateway: Gateway, operator: Operator) -> None:
    answer = await operator.ask("series", figures="clients,messages_in", last=5)
    assert set(answer["figures"]) == {"clients", "messages_in"}
    assert len(answer["figures"]["clients"]) == 5
    assert abs(answer["until"] - answer["time"]) < 5_000
    assert len((await operator.ask("series", step=60, last=300))["figures"]) == 26
    assert "step is 7, not one of 1, 10, 60" in await operator.refused("series", step=7)
    assert "no figure 'x'" in await operator.refused("series", figures="clients,x")
    said = await operator.refused("series", step=60, last=1_439)
    assert said == "last is 1439; of 26 figures at most 315 at a time"
    assert "last is 600, not" in await operator.refused("series", last=600)
