"""A bridge's side of the gateway: two sources of one topic are noticed."""

import logging

import pytest

from gateway.bridges.readings.reading_map import reading_map
from gateway.bridges.supervision.host import KINDS_MAX
from gateway.bridges.supervision.interfaces import SeriesOwners
from tests.support.clocks import NOW, ManualClock
from tests.support.nodes.bridges import Gateway
from tests.support.table import table

APART = "sensors/n1/temperature/test-other"


def values(gateway: Gateway) -> list[tuple[str, object]]:
    """Topic and value of everything that was published."""
    return [(topic, fields["value"]) for topic, fields in gateway.broker.readings]


def test_two_bridges_with_one_node_are_told_once_counted_and_kept_apart(
    clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    gateway = Gateway.make(clock)
    one, other = gateway.host(name="one"), gateway.host(name="other")
    for number, host in enumerate((one, one, other, one, other)):
        host.read("n1", "temperature", number)
        host.read("n1" if host is one else "n2", "humidity", 40)
    topics = [topic for topic, _ in values(gateway) if "temperature" in topic]
    plain = "sensors/n1/temperature"
    assert topics == [plain, plain, APART, plain, APART]
    assert gateway.figure("test/node_conflicts") == 2
    assert caplog.text.count("has two sources, test one and test other") == 1
    clock.step(10_000)
    other.read("n1", "temperature", 5)
    assert values(gateway)[-1] == (APART, 5), "what was apart stays apart"
    one.close()
    other.read("n1", "temperature", 6)
    assert values(gateway)[-1] == (plain, 6), "until the first one's bridge has ended"


def test_a_node_that_was_plugged_in_elsewhere_keeps_its_series(clock: ManualClock) -> None:
    gateway = Gateway.make(clock)
    one, other = gateway.host(name="one"), gateway.host(name="other")
    one.read("n1", "temperature", 1)
    one.waiting("unplugged")
    other.read("n1", "temperature", 2)
    one.read("n2", "temperature", 1)
    clock.step(61)
    other.read("n2", "temperature", 2)
    for gap in (300, 300):
        clock.step(gap)
        one.read("n3", "temperature", 1)
    clock.step(899)
    other.read("n3", "temperature", 2)
    assert [topic for topic, value in values(gateway) if value == 2] == [
        "sensors/n1/temperature",
        "sensors/n2/temperature",
        "sensors/n3/temperature/test-other",
    ]
    assert gateway.figure("test/node_conflicts") == 1


def test_two_sources_of_one_bridge_are_kept_apart_for_ever(clock: ManualClock) -> None:
    gateway = Gateway.make(clock)
    host = gateway.host()
    host.read("n1", "temperature", 1, source="left")
    host.read("n1", "temperature", 2, source="right")
    host.read("n1", "temperature", 3, source="right", instance="x")
    host.close()
    again = gateway.host()
    again.read("n1", "temperature", 4, source="right")
    again.read("n1", "temperature", 5, source="left")
    assert values(gateway) == [
        ("sensors/n1/temperature", 1),
        ("sensors/n1/temperature/right", 2),
        ("sensors/n1/temperature/x", 3),
        ("sensors/n1/temperature/right", 4),
        ("sensors/n1/temperature", 5),
    ]
    assert gateway.series_labels.forget("n1") == 1


SEVERAL: list[tuple[dict[str, object], dict[str, object]]] = [
    (
        {"SI7021-14": {"Temperature": 1}, "SI7021-15": {"Temperature": 2}},
        {"temperature/SI7021-14": 1, "temperature/SI7021-15": 2},
    ),
    (
        {"DS18B20-1": {"Id": "01131B123456", "Temperature": 1}, "TempUnit": "C"},
        {"temperature/01131b123456": 1},
    ),
    (
        {"BME280": {"Temperature": 1, "Humidity": 40}, "AHT20": {"Temperature": 2}},
        {"temperature": 1, "temperature/AHT20": 2, "humidity": 40},
    ),
    ({"temp_c": 21, "temp_f": 70}, {"temperature": 21, "temperature/temp_f": 70}),
    (
        {"a": {"temp": 1}, "b": {"temp": 2, "temperature": 3}},
        {"temperature": 1, "temperature/b": 2, "temperature/b-temperature": 3},
    ),
    (
        {"ENERGY": {"Power": [10, 20], "Voltage": 230}},
        {"power/1": 10, "power/2": 20, "voltage": 230},
    ),
    ({"switch:0": {"power": 1}, "switch:3": {"power": 4}}, {"power": 1, "power/switch:3": 4}),
    ({"voltage_l1": 230, "voltage_l2": 231}, {"voltage_l1": 230, "voltage_l2": 231}),
]


@table("fields, expected", SEVERAL)
def test_several_of_one_quantity_in_a_message_are_apart(
    fields: dict[str, object], expected: dict[str, object]
) -> None:
    gateway = Gateway.make()
    host = gateway.host()
    for _ in range(2):
        host.read_fields("n1", fields)
    found = {topic.removeprefix("sensors/n1/"): value for topic, value in values(gateway)}
    assert found == expected
    assert len(values(gateway)) == 2 * len(expected), "each has one value at a time"


def test_the_second_of_a_message_keeps_its_name_where_it_comes_alone() -> None:
    gateway = Gateway.make()
    host = gateway.host()
    host.read_fields("n1", {"BME280": {"temp": 1}, "AHT20": {"temp": 2}})
    host.read_fields("n1", {"AHT20": {"temp": 3}})
    gateway.host().read_fields("n1", {"AHT20": {"temp": 4}})
    host.read_fields("n1", {"SHT31": {"temp": 5}})
    assert [topic.removeprefix("sensors/n1/temperature") for topic, _ in values(gateway)] == [
        "",
        "/AHT20",
        "/AHT20",
        "/AHT20",
        "",
    ]
    assert gateway.figure("test/node_conflicts") == 1


def test_a_map_names_instances_and_those_of_commands_are_refused() -> None:
    names = {"t1": {"quantity": "temp_c", "instance": "boiler"}}
    gateway = Gateway.make()
    host = gateway.host(reading_map=reading_map(names))
    host.read_fields("n1", {"t1": 60, "temp": 21}, instance="room")
    host.read("n1", "x", 1, instance="set")
    assert [topic for topic, _ in values(gateway)] == [
        "sensors/n1/temperature/boiler",
        "sensors/n1/temperature/room",
    ]
    assert gateway.figure("test/rejected") == 1
    with pytest.raises(ValueError, match="set or answer"):
        reading_map({"t": {"quantity": "temperature", "instance": "set"}})


def test_what_cannot_be_a_reading_is_counted_and_nothing_is_raised(clock: ManualClock) -> None:
    gateway = Gateway.make(clock)
    host = gateway.host()
    for value in (float("inf"), float("nan"), "\ud800"):
        assert not host.read("n1", "x", value)
    assert not host.read("a/b", "x", 1)
    assert not host.read("n1", "", 1)
    assert host.read("n1", "x", 1, time=10**30) is False
    assert gateway.figure("test/rejected") == 6
    for time in (0, 4_102_444_800_000):
        assert host.read("n1", "x", 1, time=time)
    assert [fields["time"] for _, fields in gateway.broker.readings] == [NOW, NOW]
    assert gateway.figure("test/clock_errors") == 2


def test_whose_a_series_is_that_two_bridges_have_survives_a_restart(clock: ManualClock) -> None:
    """The one that was second stays it, whichever is heard first after the restart."""
    gateway = Gateway.make(clock)
    one, other = gateway.host(name="one"), gateway.host(name="other")
    for host in (one, other):
        host.read("n1", "temperature", 1)
    gateway.owners = SeriesOwners()
    gateway.owners.configured = {"test:one", "test:other"}
    one, other = gateway.host(name="one"), gateway.host(name="other")
    for host in (other, one, other):
        host.read("n1", "temperature", 2, source="a sensor" if host is one else "")
    plain = "sensors/n1/temperature"
    assert values(gateway)[2:] == [(APART, 2), (plain, 2), (APART, 2)]
    gateway.owners = SeriesOwners()
    gateway.owners.configured = {"test:other"}
    gateway.host(name="other").read("n1", "temperature", 3)
    assert values(gateway)[-1] == (plain, 3), "the first one is no more"


def test_a_series_that_went_to_another_bridge_stays_its(clock: ManualClock) -> None:
    gateway = Gateway.make(clock)
    one, other = gateway.host(name="one"), gateway.host(name="other")
    one.read("n1", "temperature", 1)
    other.read("n1", "temperature", 1)
    one.close()
    other.read("n1", "temperature", 2)
    third = gateway.host(name="third")
    other.waiting("unplugged")
    third.read("n1", "temperature", 3)
    assert gateway.series_labels.given["sensors/n1/temperature", "owner"] == "test:third"


def test_a_line_is_logged_a_few_times_an_hour(
    clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    host = Gateway.make(clock).host()
    for _ in range(20):
        host.waiting("unplugged")
        host.working()
        clock.step(60)
    assert caplog.messages == ["test b: waiting: unplugged", "test b: open"] * 5
    clock.step(3_600)
    host.waiting("unplugged")
    host.waiting("in use")
    assert caplog.messages[10:] == [
        "test b: waiting: unplugged (15 such lines were left out)",
        "test b: waiting: in use",
    ]


def test_kinds_of_lines_are_bounded(clock: ManualClock, caplog: pytest.LogCaptureFixture) -> None:
    host = Gateway.make(clock).host()
    for number in range(3 * KINDS_MAX):
        host.log(logging.WARNING, f"line {number}", f"kind {number}")
    assert len(caplog.messages) == 3 * KINDS_MAX
    assert len(host._lines) == KINDS_MAX
