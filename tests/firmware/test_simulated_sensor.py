"""The simulated weather: the same for the same seed, plausible for ever."""

from hypothesis import given
from hypothesis import strategies as st
from node.simulated_sensor import SimulatedSensor


def test_the_first_readings() -> None:
    assert SimulatedSensor(1).read() == [
        ("temperature", (2100, -2), "°C"),
        ("humidity", (4800, -2), "%"),
        ("pressure", (101300, -2), "hPa"),
    ]


def test_the_same_seed_gives_the_same_weather_and_another_another() -> None:
    def weather(seed: int) -> list[object]:
        sensor = SimulatedSensor(seed)
        return [sensor.read() for _ in range(50)]

    assert weather(5) == weather(5)
    assert weather(5) != weather(6)


@given(st.integers())
def test_it_stays_plausible(seed: int) -> None:
    sensor = SimulatedSensor(seed)
    for _ in range(500):
        (_, (temperature, _), _), (_, (humidity, _), _), (_, (pressure, _), _) = sensor.read()
        assert 0 < temperature < 4500
        assert 0 < humidity < 10_000
        assert 95_000 < pressure < 108_000
