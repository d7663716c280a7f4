import math

import pytest

from gateway.telemetry.sys_topics import MINUTES, LoadAverage


def test_a_new_rate_is_taken_up_slowly() -> None:
    load = LoadAverage()
    assert load.values == [0, 0, 0]
    load.update(600, 10)  # 3,600 a minute
    # the share of 10 seconds in each average: 1 - e^(-10/60), 1 - e^(-10/300), 1 - e^(-10/900)
    expected = [3_600 * 0.153518, 3_600 * 0.032784, 3_600 * 0.011050]
    assert load.values == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("seconds", [1, 10, 60])
def test_a_steady_rate_becomes_the_load(seconds: int) -> None:
    load = LoadAverage()
    for look in range(1, 7_200 // seconds + 1):
        load.update(look * seconds * 2, seconds)
    assert load.values == pytest.approx([120, 120, 120], rel=0.01)


def test_a_load_falls_off_when_nothing_happens() -> None:
    load = LoadAverage()
    load.update(1_000, 60)
    before = list(load.values)
    load.update(1_000, 60)
    halved = [
        value * math.exp(-1 / minutes) for value, minutes in zip(before, MINUTES, strict=True)
    ]
    assert load.values == pytest.approx(halved)
