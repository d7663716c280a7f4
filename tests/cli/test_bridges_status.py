"""`tidegate bridges status` with a running gateway: what is read, and what is wrong."""

import json
from pathlib import Path
from typing import Any

import pytest

from gateway.cli.bridges import report, status_lines
from tests.cli.conftest import Command, MakeGateway
from tests.support.nodes.serial_line import SerialLine
from tests.support.ports import free_port
from tests.support.waiting import until

CONFIG = """
[gateway]
id = "barn"

[[serial]]
name = "weather"
port = "{port}"
format = "json"

[[modbus]]
name = "meters"
port = "tcp://127.0.0.1:{closed}"

[[modbus.register]]
address = 1
quantity = "voltage"
"""


@pytest.fixture
def line(tmp_path: Path) -> SerialLine:
    line = SerialLine(tmp_path / "ttyWEATHER")
    line.plug()
    return line


def test_each_series_and_each_kind_of_error_is_shown(
    tmp_path: Path, tidegate: Command, make_gateway: MakeGateway, line: SerialLine
) -> None:
    gateway = make_gateway(tmp_path, CONFIG.format(port=line.port, closed=free_port()))
    gateway.start()
    until(lambda: "serial weather: open" in gateway.log(), "the port is open", gateway.log)
    line.send(b'{"temperature":21.5,"humidity":48}\n')
    line.send(b'{"quantity":"power","value":[1]}\n{"quantity":"power","value":[2]}\n')
    line.send(b"booting\n")
    url = f"mqtt://127.0.0.1:{gateway.port}"

    def status(*words: str) -> list[dict[str, Any]]:
        done = tidegate("bridges", "status", *words, url, "--json")
        found: list[dict[str, Any]] = json.loads(done.stdout)
        return found

    until(
        lambda: status("weather")[0]["counted"].get("text_lines") == 1, "it was read", gateway.log
    )
    (weather,) = status("weather")
    assert [(each["quantity"], each["value"]) for each in weather["series"]] == [
        ("humidity", 48),
        ("temperature", 21.5),
    ]
    (refused,) = weather["refused"]
    assert refused["count"] == 2
    assert "value [2]: only a number" in refused["example"]
    done = tidegate("bridges", "status", url)
    assert done.returncode == 1, "the meters are not there"
    assert f"serial weather ({line.port}): open, last received " in done.stdout
    assert "modbus meters (tcp://127.0.0.1:" in done.stdout
    assert ": waiting: " in done.stdout
    assert tidegate("bridges", "status", "weather", url).returncode == 0
    unknown = tidegate("bridges", "status", "cellar", url)
    assert unknown.returncode == 2
    assert "has no bridge 'cellar'; there are serial weather, modbus meters" in unknown.stderr
    line.close()


def test_a_gateway_without_bridges_says_so(
    tmp_path: Path, tidegate: Command, make_gateway: MakeGateway
) -> None:
    gateway = make_gateway(tmp_path).start()
    done = tidegate("bridges", "status", f"mqtt://127.0.0.1:{gateway.port}")
    assert (done.returncode, done.stdout) == (0, "no bridge is configured\n")


def test_what_a_person_reads() -> None:
    bridge = {
        "kind": "modbus",
        "name": "meters",
        "place": "/dev/ttyUSB0",
        "state": "open",
        "error": "",
        "age": 1.2,
        "sent": 0,
        "sent_age": None,
        "counted": {"timeouts": 3, "answers": 12_000},
        "troubles": {"device 7": "does not answer; polled again in 4 s"},
        "refused": [{"reason": "x", "count": 2, "example": "value nan", "age": 90.0}],
        "series": [
            {
                "node": "house",
                "quantity": "power",
                "instance": "l1",
                "value": 230.5,
                "unit": "W",
                "age": 2.0,
                "quality": "out_of_range",
            },
            {
                "node": "house",
                "quantity": "door",
                "instance": "",
                "value": True,
                "unit": None,
                "age": 7_300.0,
                "quality": "",
            },
        ],
    }
    assert list(status_lines(bridge)) == [
        "modbus meters (/dev/ttyUSB0): open, last received 1 s ago",
        "  counted: 12,000 answers, 3 timeouts",
        "  trouble: device 7: does not answer; polled again in 4 s",
        "  refused: 2 times, last 90 s ago: value nan",
        "  house  power/l1  230.5 W  2 s ago, out of range",
        "  house  door      true     2.0 h ago",
    ]


@pytest.mark.parametrize(
    ("age", "sent", "sent_age", "text"),
    [
        (1.2, 7, 3.0, "last received 1 s ago"),
        (None, 1_200, 3.0, "1,200 messages sent, the last 3 s ago"),
        (None, 0, None, "nothing came yet"),
    ],
)
def test_when_a_bridge_last_worked(
    age: float | None, sent: int, sent_age: float | None, text: str
) -> None:
    bridge = {"kind": "homeassistant", "name": "ha", "place": "", "state": "open", "error": ""}
    nothing: dict[str, Any] = {"counted": {}, "troubles": {}, "refused": [], "series": []}
    times = {"age": age, "sent": sent, "sent_age": sent_age}
    assert report([{**bridge, **nothing, **times}]) == f"homeassistant ha: open, {text}"


def test_what_a_device_sent_drives_no_terminal() -> None:
    bridge: dict[str, Any] = {
        "kind": "serial",
        "name": "weather",
        "place": "",
        "state": "open",
        "error": "",
        "age": None,
        "sent": 0,
        "sent_age": None,
        "counted": {},
        "troubles": {},
        "series": [],
        "refused": [{"count": 2, "age": 1.0, "example": "no number: \x1b[2J"}],
    }
    assert "\x1b" not in report([bridge])
    assert "no number: \\x1b[2J" in report([bridge])
