"""Lines to messages, and the counts of what became none."""

import logging

import pytest

from gateway.bridges.readings.reading_publisher import REASON_MAX
from gateway.bridges.serial.csv_lines import CsvLines
from gateway.bridges.serial.json_lines import parse_json
from gateway.bridges.serial.regex_lines import compile_pattern
from gateway.bridges.serial.serial_bridge import TEXT_LINES_A_MINUTE, LineIntake
from gateway.mqtt.reason_codes import ReasonCode
from tests.support.clocks import NOW, ManualClock
from tests.support.nodes.bridges import Gateway

LINE = b'{"quantity":"temperature","value":21.5,"unit":"\xc2\xb0C"}\n'


@pytest.fixture
def gateway(clock: ManualClock) -> Gateway:
    return Gateway.make(clock)


@pytest.fixture
def intake(gateway: Gateway) -> LineIntake:
    return LineIntake("board", gateway.host("serial", "tty"), parse_json)


def counts(gateway: Gateway) -> dict[str, int]:
    return {
        name.removeprefix("tidegate/serial/"): int(value)
        for name, value in gateway.counters.values.items()
        if not name.startswith(("tidegate/serial/tty/", "tidegate/bridges/"))
    }


def test_a_line_becomes_a_message(intake: LineIntake, gateway: Gateway) -> None:
    intake.feed(LINE)
    assert gateway.broker.readings == [
        ("sensors/board/temperature", {"value": 21.5, "unit": "°C", "time": NOW})
    ]
    assert counts(gateway) == {"lines": 1, "readings": 1}


def test_what_boards_print_becomes_a_reading_for_each_value(
    intake: LineIntake, gateway: Gateway
) -> None:
    intake.feed(b'{"temp":21.3,"hum":40,"ok":true,"node":"kitchen","list":[1]}\n')
    readings = gateway.broker.readings
    assert [(topic, fields["value"], fields.get("unit")) for topic, fields in readings] == [
        ("sensors/kitchen/temperature", 21.3, None),
        ("sensors/kitchen/humidity", 40, "%"),
        ("sensors/kitchen/ok", True, None),
    ]


def test_what_a_name_does_not_say_is_told_once(
    intake: LineIntake, caplog: pytest.LogCaptureFixture
) -> None:
    intake.feed(b'{"V":230.1,"temp":21.5,"hum":40}\n' * 3 + b'{"V":230,"I":1}\n')
    lines = [record.getMessage() for record in caplog.records]
    assert lines == [
        f'serial:tty: no unit is known for {names}: define it in `map`, such as "{first}"'
        ' = { quantity = "...", unit = "..." }'
        for names, first in (("V, temp", "V"), ("I", "I"))
    ]


TIMES = [(NOW - 5000, NOW - 5000, 0), (17, NOW, 1), (4_102_444_800_000, NOW, 1)]
"""What the node says, what is published, and the clock errors: 1970 and 2100 cannot be right."""


@pytest.mark.parametrize(("said", "published", "errors"), TIMES)
def test_a_line_names_its_node_and_a_time_that_can_be_right(
    intake: LineIntake, gateway: Gateway, said: int, published: int, errors: int
) -> None:
    intake.feed(b'{"node":"n7","quantity":"count","value":3,"time":%d}\n' % said)
    assert gateway.broker.readings == [("sensors/n7/count", {"value": 3, "time": published})]
    assert gateway.counters.count("tidegate/serial/clock_errors") == errors


def test_what_is_no_reading_is_counted_and_text_is_shown(
    intake: LineIntake, gateway: Gateway, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    intake.feed(
        b'rst:0x1 (POWERON)\n\xff\xfe\x00\n{"quantity":"a/b","value":1}\n{"node":"","a":1}\n'
    )
    expected = {"text_lines": 1, "garbage_bytes": 3, "lines": 2, "rejected": 2, "readings": 0}
    assert counts(gateway) == expected
    assert "serial tty says: rst:0x1 (POWERON)" in caplog.text


def test_each_kind_of_refusal_is_told_once_and_the_last_one_shown(
    gateway: Gateway, caplog: pytest.LogCaptureFixture
) -> None:
    host = gateway.host("serial", "tty")
    intake = LineIntake("board", host, CsvLines(("temp", "hum"), ",").parse)
    intake.feed(b"1,2,3\n1,2,3,4\n1\nnan,40\nnan,inf\n21,5\x1b,48,2\n")
    lines = [record.getMessage() for record in caplog.records if "refused" in record.getMessage()]
    assert [each.removeprefix("serial:tty: a reading was refused: ") for each in lines] == [
        "a line of 3 cells: 2 must be there: 1,2,3",
        "value nan of temperature: only finite numbers are allowed",
        "value nan of humidity: only finite numbers are allowed",
    ]
    assert gateway.counters.count("tidegate/serial/rejected") == 7
    shown = "a line of 4 cells: 2 must be there: 21,5?,48,2"
    assert gateway.figure("serial/tty/refused") == shown
    assert [topic for topic, _ in gateway.broker.readings] == ["sensors/board/humidity"]


def test_what_is_shown_of_a_refusal_is_bounded(gateway: Gateway) -> None:
    host = gateway.host("topics", "t")
    host.read("n", "state", "x" * 60_000 + "\ud800")
    assert len(str(gateway.figure("topics/t/refused"))) == REASON_MAX


def test_one_value_that_is_none_costs_no_other(intake: LineIntake, gateway: Gateway) -> None:
    intake.feed(b'{"temperature":nan,"humidity":48.5,"time":"noon"}\r')
    assert gateway.broker.readings == [
        ("sensors/board/humidity", {"value": 48.5, "unit": "%", "time": NOW})
    ]
    assert counts(gateway) == {"lines": 1, "readings": 1, "rejected": 1, "clock_errors": 2 - 1}


def test_a_board_that_talks_all_the_time_does_not_fill_the_log(
    intake: LineIntake, gateway: Gateway, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    clock.step(100)
    caplog.set_level(logging.INFO)
    intake.feed(b"hello\n" * 1000)
    assert caplog.text.count("says: hello") == TEXT_LINES_A_MINUTE
    clock.step(61)
    intake.feed(b"again\n")
    assert "says: again" in caplog.text
    assert gateway.counters.count("tidegate/serial/text_lines") == 1001


def test_what_the_broker_does_not_take_is_lost_and_counted(
    intake: LineIntake, gateway: Gateway
) -> None:
    gateway.broker.code = ReasonCode.QUOTA_EXCEEDED
    intake.feed(LINE)
    assert counts(gateway) == {"lines": 1, "lost": 1, "readings": 0}


def test_after_a_restart_of_the_port_the_half_line_is_forgotten(
    intake: LineIntake, gateway: Gateway
) -> None:
    intake.feed(LINE[:20])
    intake.restart()
    intake.feed(LINE)
    assert len(gateway.broker.messages) == 1


def test_lines_of_several_stations_are_of_the_nodes_that_their_fields_say() -> None:
    gateway = Gateway.make()
    host = gateway.host("serial", "tty")
    intake = LineIntake("{model}-{id}", host, parse_json, "{channel}")
    intake.feed(
        b'{"model":"Acurite","id":7,"channel":"A","temp_c":20}\n'
        b'{"model":"Acurite","id":8,"temp_c":21}\n'
        b'{"temp_c":22}\n'
        b'{"id":9,"quantity":"humidity","value":40,"instance":"wet"}\n'
        b'{"model":"x","node":"named","temp_c":23}\n'
    )
    assert [(topic, each["value"]) for topic, each in gateway.broker.readings] == [
        ("sensors/Acurite-7/temperature/A", 20),
        ("sensors/Acurite-8/temperature", 21),
        ("sensors/9/humidity/wet", 40),
        ("sensors/x/temperature", 23),
    ]
    assert gateway.figure("serial/rejected") == 1


def test_lines_with_two_addresses_are_two_series(intake: LineIntake, gateway: Gateway) -> None:
    first, second = "28FF641E8216047C", "28:ff:a2:11:82:16:03:0b"
    for value, address in enumerate((first, second, second, first)):
        intake.feed(f'{{"id":"{address}","temp_c":{value}}}\n'.encode())
    intake.feed(b"".join(b'{"id":"message-%04d","hum":1}\n' % each for each in range(100)))
    own, other = "sensors/board/temperature", "sensors/board/temperature/28ffa2118216030b"
    found = [(topic, each["value"]) for topic, each in gateway.broker.readings]
    assert found[:4] == [(own, 0), (other, 1), (other, 2), (own, 3)]
    topics = {topic for topic, _ in found}
    assert topics == {own, other, "sensors/board/humidity"}, "a message's number is no address"


def test_columns_and_groups_say_of_which_instance_a_line_is() -> None:
    gateway = Gateway.make()
    host = gateway.host("serial", "tty")
    rows = LineIntake("board", host, CsvLines(("node", "instance", "temp_c"), ",").parse)
    rows.feed(b"n1,left,1\nn1,,2\n")
    pattern = r"(?P<instance>\w+)=(?P<temp_c>\d+)"
    LineIntake("board", host, compile_pattern(pattern)).feed(b"right=3\n")
    assert [(topic, each["value"]) for topic, each in gateway.broker.readings] == [
        ("sensors/n1/temperature/left", 1),
        ("sensors/n1/temperature", 2),
        ("sensors/board/temperature/right", 3),
    ]
