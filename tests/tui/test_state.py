import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui import figures
from tui.state import (
    MAX_ALARMS,
    MAX_LOG_LINES,
    MAX_PORTS,
    Alarm,
    Change,
    GatewayState,
    LogLine,
    Port,
)

NOW = 1_763_740_000.0
ROOT = "$SYS/broker/"


def told(*messages: tuple[str, bytes]) -> GatewayState:
    state = GatewayState()
    for name, payload in messages:
        state.apply(ROOT + name, payload, NOW)
    return state


@pytest.mark.parametrize(
    ("topic", "payload", "change"),
    [
        ("$SYS/broker/publish/messages/received", b"5", Change.FIGURES),
        ("$SYS/broker/uptime", b"5 seconds", Change.FIGURES),
        ("$SYS/broker/tidegate/uplink/state", b"connected", Change.FIGURES),
        ("$SYS/broker/tidegate/serial/ttyUSB0/state", b"open", Change.PORTS),
        ("$SYS/broker/tidegate/alarm/disk", b'{"raised":1,"text":"x"}', Change.ALARMS),
        ("$SYS/broker/tidegate/log", b"{}", Change.LOG),
        ("$SYS/broker/tidegate/serial/frames", b"5", Change.NOTHING),
        ("$SYS/broker/load/messages/1min", b"5", Change.NOTHING),
        ("sensors/n1/temperature", b"21", Change.SENSORS),
    ],
)
def test_what_a_message_changes(topic: str, payload: bytes, change: Change) -> None:
    assert GatewayState().apply(topic, payload, NOW) == change


def test_figures() -> None:
    state = told(
        ("tidegate/outbox/rows", b"4912"),
        ("tidegate/outbox/bytes", b"not a number"),
        ("tidegate/uplink/destination", b"mqtts://fleet\x1b:8883"),
        ("uptime", b"7200 seconds"),
    )
    assert state.count(figures.OUTBOX_ROWS) == 4_912
    assert state.count(figures.OUTBOX_BYTES) is None
    assert state.word(figures.UPLINK_DESTINATION) == "mqtts://fleet·:8883"
    assert state.word(figures.UPLINK_STATE) == ""
    assert state.uptime == 7_200


def test_a_count_that_is_no_longer_a_number_is_not_known() -> None:
    state = told(("tidegate/outbox/rows", b"5"), ("tidegate/outbox/rows", b"?"))
    assert state.count(figures.OUTBOX_ROWS) is None


def test_a_gateway_that_never_counted_has_counted_0() -> None:
    assert told(("version", b"mosquitto")).count(figures.OUTBOX_ROWS) is None
    assert told(("tidegate/gateway/id", b"barn")).count(figures.OUTBOX_ROWS) == 0


def test_ports() -> None:
    state = told(
        ("tidegate/serial/ttyUSB0/state", b"waiting"),
        ("tidegate/serial/ttyUSB0/error", b"no such file"),
        ("tidegate/serial/ttyACM0/state", b"open"),
    )
    assert state.ports == {
        "serial ttyUSB0": Port("waiting", "no such file"),
        "serial ttyACM0": Port("open"),
    }


def test_ports_are_bounded() -> None:
    state = told(*((f"tidegate/serial/p{n}/state", b"open") for n in range(MAX_PORTS + 3)))
    assert len(state.ports) == MAX_PORTS
    assert state.left_out == 3


def test_an_alarm_is_raised_and_ended() -> None:
    state = told(
        ("tidegate/alarm/disk", b'{"raised": 1763740000500, "text": "full"}'),
        ("tidegate/alarm/odd", b"not JSON"),
    )
    assert state.alarms == {
        "disk": Alarm("full", 1_763_740_000.5),
        "odd": Alarm("not JSON", None),
    }
    state.apply(ROOT + "tidegate/alarm/disk", b"", NOW)
    assert list(state.alarms) == ["odd"]


def test_alarms_are_bounded() -> None:
    state = told(*((f"tidegate/alarm/a{n}", b"{}") for n in range(MAX_ALARMS + 2)))
    assert len(state.alarms) == MAX_ALARMS
    assert state.left_out == 2


def test_log_lines() -> None:
    line = {"time": 1_763_740_000_500, "level": "WARNING", "logger": "uplink", "message": "a\nb"}
    state = told(("tidegate/log", json.dumps(line).encode()), ("tidegate/log", b"plain \xff"))
    state.note("info", "connected", NOW)
    assert list(state.log) == [
        LogLine(1_763_740_000.5, "warning", "uplink", "a·b"),
        LogLine(NOW, "", "gateway", "plain \ufffd"),
        LogLine(NOW, "info", "screen", "connected"),
    ]


def test_the_log_is_bounded() -> None:
    state = told(*((("tidegate/log", b"{}"),) * (MAX_LOG_LINES + 5)))
    assert len(state.log) == MAX_LOG_LINES
    assert state.logged == MAX_LOG_LINES + 5


def test_begin_forgets_what_is_told_anew() -> None:
    state = told(
        ("tidegate/outbox/rows", b"5"),
        ("tidegate/uplink/state", b"connected"),
        ("tidegate/serial/p/state", b"open"),
        ("tidegate/alarm/disk", b"{}"),
        ("tidegate/log", b"{}"),
        ("uptime", b"5 seconds"),
    )
    state.apply("sensors/n1/temperature", b"21", NOW)
    state.begin(NOW)
    assert (state.counts, state.words, state.ports, state.alarms) == ({}, {}, {}, {})
    assert state.uptime is None
    assert len(state.sensors) == len(state.log) == 1


def test_a_settled_round_gives_rates_and_their_course() -> None:
    state = GatewayState()
    for uptime, received, rows in ((10, 100, 4), (20, 300, 9)):
        state.apply(ROOT + "uptime", f"{uptime} seconds".encode(), NOW + uptime)
        state.apply(ROOT + figures.RECEIVED, str(received).encode(), NOW + uptime)
        state.apply(ROOT + figures.OUTBOX_ROWS, str(rows).encode(), NOW + uptime)
        assert state.settle(NOW + uptime + 1) == Change.FIGURES
    assert state.settle(NOW + 22) == Change.NOTHING
    assert state.rates.get(figures.RECEIVED) == 20
    assert list(state.outbox_history) == [4, 9]
    assert list(state.traffic_history) == [0, 20]


OTHERS = (
    "uptime",
    "tidegate/log",
    "tidegate/alarm/x",
    "tidegate/alarm/",
    "tidegate/serial/p/state",
)
NAMES = st.sampled_from([*sorted(figures.COUNTS | figures.WORDS), *OTHERS])
TOPICS = st.one_of(st.text(), NAMES.map(ROOT.__add__), st.text().map(f"{ROOT}tidegate/".__add__))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda children: st.lists(children) | st.dictionaries(st.text(), children),
    max_leaves=5,
)
DOCUMENTS = st.dictionaries(
    st.sampled_from(["value", "unit", "time", "raised", "text", "level", "logger", "message"]),
    VALUES,
)
PAYLOADS = st.one_of(
    st.binary(),
    st.integers().map(lambda n: str(n).encode()),
    DOCUMENTS.map(json.dumps).map(str.encode),
)


@pytest.mark.uncovered
@given(st.lists(st.tuples(TOPICS, PAYLOADS, st.booleans()), max_size=10))
def test_never_raises(messages: list[tuple[str, bytes, bool]]) -> None:
    state = GatewayState()
    for position, (topic, payload, retained) in enumerate(messages):
        state.apply(topic, payload, NOW + position, retained=retained)
        state.settle(NOW + position + 0.9)
    assert all(line.message.isprintable() for line in state.log)
    assert all(word.isprintable() for word in state.words.values())
    assert all(
        name.isprintable() and port.error.isprintable() for name, port in state.ports.items()
    )
    assert all(name.isprintable() and a.text.isprintable() for name, a in state.alarms.items())


def test_the_lines_from_before_the_connection_come_once() -> None:
    state = GatewayState()
    lines = [{"time": 1_000 * n, "level": "INFO", "logger": "l", "message": str(n)} for n in (1, 2)]
    topic = "$SYS/broker/tidegate/log/recent"
    state.apply(topic, json.dumps(lines[:1]).encode(), NOW, retained=True)
    state.apply("$SYS/broker/tidegate/log", json.dumps(lines[1]).encode(), NOW)
    state.apply(topic, json.dumps(lines).encode(), NOW)  # a refresh: its lines came by themselves
    state.note("info", "connected again", NOW)
    lines.append({"time": 3_000, "level": "INFO", "logger": "l", "message": "3"})
    state.apply(topic, json.dumps(lines).encode(), NOW, retained=True)
    told = [line.message for line in state.log]
    assert told == ["1", "2", "connected again", "3"]
    for garbage in (b"", b"{}", b"[1, {}", b"[" * 9_000, b"[1]"):
        assert state.apply(topic, garbage, NOW, retained=True) is Change.LOG


def test_out_leaves_this_screen_out() -> None:
    state = GatewayState()
    for uptime, sent, heard in ((10, 1_000, 0), (20, 1_300, 200)):
        state.apply(ROOT + figures.SENT, str(sent).encode(), NOW + uptime)
        state.apply(ROOT + figures.UPTIME, f"{uptime} seconds".encode(), NOW + uptime)
        state.settle(NOW + uptime + 1, heard)
    assert state.outgoing() == 10
