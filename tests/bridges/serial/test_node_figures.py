"""What nodes say of themselves: added up for their port, and an alarm for safe mode."""

import pytest

from gateway.bridges.readings.reading import Reading, Value
from gateway.bridges.serial.frame_intake import NodeFigures
from tests.support.nodes.bridges import Gateway


class Port:
    """The figures of a port, and its nodes' heartbeats."""

    def __init__(self) -> None:
        gateway = Gateway.make()
        self.counters, self.alarms = gateway.counters, gateway.alarms
        self.figures = NodeFigures(gateway.host("serial", "ttyUSB0"))

    def beat(self, node: str, boot: int, **values: Value) -> None:
        self.figures.note_dropped(node, boot, 0)
        self.figures.note(Reading(node, name, value, None, 0) for name, value in values.items())

    def shown(self, name: str) -> object:
        return self.counters.values[f"tidegate/serial/ttyUSB0/{name}"]


@pytest.fixture
def port() -> Port:
    return Port()


def test_figures_are_those_of_the_nodes_present_starts(port: Port) -> None:
    port.beat("n1", 7, sensor_failures=3, failed_starts=2, temperature=40)
    port.beat("n2", 8, sensor_failures=4, suppressed=True)
    assert (port.shown("sensor_failures"), port.shown("failed_starts")) == (7, 2)
    port.beat("n1", 9)
    assert (port.shown("sensor_failures"), port.shown("failed_starts")) == (4, 0)
    assert port.shown("suppressed") == 1


def test_safe_mode_is_an_alarm_until_the_next_start(
    port: Port, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    for _ in range(2):
        port.beat("n1", 7, failed_starts=5, safe_mode=True)
    assert list(port.alarms.raised) == ["node-n1"]
    assert port.shown("safe_mode") == 1
    port.beat("n1", 8)
    assert (port.shown("safe_mode"), port.alarms.raised) == (0, {})
    lines = [record.message for record in caplog.records]
    assert lines == [
        "serial ttyUSB0: node n1 failed several times in a row, and runs without its sensors",
        "serial ttyUSB0: node n1 has left its safe mode",
    ]


def test_the_alarms_end_with_the_bridge(port: Port) -> None:
    port.beat("n1", 7, safe_mode=True)
    port.beat("n2", 7, safe_mode=False)
    port.figures.close()
    assert port.alarms.raised == {}
