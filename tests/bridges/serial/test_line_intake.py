"""JSON lines to messages, and the counts of what became none."""

import pytest

from gateway.bridges.readings.reading_publisher import ReadingPublisher
from gateway.bridges.serial.line_intake import LineIntake
from gateway.counters import Counters
from gateway.mqtt.reason_codes import ReasonCode
from tests.support.bridges import Broker
from tests.support.clocks import NOW, ManualClock

LINE = b'{"quantity":"temperature","value":21.5,"unit":"\xc2\xb0C"}\n'


@pytest.fixture
def intake(broker: Broker, counters: Counters, clock: ManualClock) -> LineIntake:
    publisher = ReadingPublisher(
        "serial:ttyACM0", publish=broker.publish, counters=counters, clock=clock
    )
    return LineIntake("ttyACM0", publisher, counters=counters, clock=clock)


def counts(counters: Counters) -> dict[str, int]:
    return {name.rpartition("/")[2]: int(value) for name, value in counters.values.items()}


def test_a_line_becomes_a_message(intake: LineIntake, broker: Broker, counters: Counters) -> None:
    intake.feed(LINE)
    assert broker.readings == [
        ("sensors/ttyACM0/temperature", {"value": 21.5, "unit": "°C", "time": NOW})
    ]
    assert counts(counters) == {"lines": 1, "readings": 1}


def test_a_line_names_its_node_and_time(intake: LineIntake, broker: Broker) -> None:
    intake.feed(b'{"node":"n7","quantity":"count","value":3,"time":17}\n')
    assert broker.readings == [("sensors/n7/count", {"value": 3, "time": 17})]


def test_what_is_no_reading_is_counted(intake: LineIntake, counters: Counters) -> None:
    intake.feed(b'boot\n{"quantity":"a/b","value":1}\n')
    assert counts(counters) == {"garbage_bytes": 4, "lines": 1, "rejected": 1}


def test_what_the_broker_does_not_take_is_lost_and_counted(
    intake: LineIntake, broker: Broker, counters: Counters
) -> None:
    broker.code = ReasonCode.QUOTA_EXCEEDED
    intake.feed(LINE)
    assert counts(counters) == {"lines": 1, "lost": 1}


def test_after_a_restart_of_the_port_the_half_line_is_forgotten(
    intake: LineIntake, broker: Broker
) -> None:
    intake.feed(LINE[:20])
    intake.restart()
    intake.feed(LINE)
    assert len(broker.messages) == 1
