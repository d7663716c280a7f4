"""`tidegate uplink status` and a pause, with a running gateway that is started again."""

import json
import queue
from pathlib import Path

import pytest

from gateway.cli.uplink import collect, status_lines
from tests.cli.conftest import Command
from tests.support.processes.gateway_process import GatewayProcess


def url(gateway: GatewayProcess) -> str:
    return f"mqtt://127.0.0.1:{gateway.port}"


@pytest.mark.uncovered
def test_a_pause_outlives_a_restart_and_the_status_says_so(
    tmp_path: Path, tidegate: Command
) -> None:
    gateway = GatewayProcess(tmp_path, "[uplink]\n")
    gateway.start()
    try:
        done = tidegate("uplink", "status", url(gateway))
        assert done.returncode == 0
        output = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
        assert output["state"] == "connected"
        assert output["destination"].endswith("landing")
        assert output["waiting"] == "0 messages, 0.0 MB"
        assert tidegate("uplink", "pause", url(gateway)).returncode == 0
        gateway.kill()
        gateway.start()
        assert "paused before the start" in gateway.log()
        done = tidegate("uplink", "status", url(gateway), "--json")
        assert (done.returncode, json.loads(done.stdout)["uplink/state"]) == (1, "paused")
        assert tidegate("uplink", "resume", url(gateway)).returncode == 0
        gateway.kill()
        gateway.start()
        assert tidegate("uplink", "status", url(gateway)).returncode == 0
    finally:
        gateway.kill()


def test_what_a_person_reads() -> None:
    assert status_lines(
        {
            "uplink/state": "disconnected",
            "uplink/error": "no route to host",
            "uplink/next_attempt_seconds": 12,
            "uplink/destination": "mqtts://fleet.example",
            "outbox/rows": 3204,
            "outbox/bytes": 1_240_000,
            "outbox/oldest_seconds": 7200,
            "outbox/survives_seconds": 259_200,
            "uplink/sent": 9000,
            "uplink/acknowledged": 8990,
            "uplink/down": 1200,
            "uplink/down_too_large": 3,
            "uplink/budget": 10_000_000,
            "uplink/budget_used": 2_500_000,
        }
    ) == [
        "state         disconnected: no route to host",
        "next try      in 12 s",
        "destination   mqtts://fleet.example",
        "waiting       3,204 messages, 1.2 MB, the oldest for 2.0 h",
        "since start   9,000 sent, 8,990 acknowledged, 0 resent, 0 refused, 0 reconnects",
        "from fleet    1,200 published, 0 dropped, 3 too large",
        "budget        2.5 of 10.0 MB used today",
        "survives      an outage of 3.0 days",
    ]


def test_a_gateway_that_is_not_there_is_named(tidegate: Command) -> None:
    done = tidegate("uplink", "status", "mqtt://127.0.0.1:1")
    assert done.returncode == 2
    assert "no gateway at mqtt://127.0.0.1:1" in done.stderr


def test_a_client_without_the_right_to_read_them_is_told_at_once(
    tmp_path: Path, tidegate: Command
) -> None:
    role = '[[access.role]]\nname = "guest"\nanonymous = true\nread = ["public/#"]\n'
    gateway = GatewayProcess(tmp_path, role)
    gateway.start()
    try:
        done = tidegate("uplink", "status", url(gateway))
    finally:
        gateway.kill()
    assert done.returncode == 2
    refused = "it refuses '$SYS/broker/tidegate/uplink/#': Not authorized\n"
    assert done.stderr.endswith(refused)


def test_what_ends_while_it_is_listed_is_no_figure() -> None:
    heard: queue.SimpleQueue[tuple[str, bytes] | str] = queue.SimpleQueue()
    for figure in (("channels", b"1"), ("channels/a/depth", b"2"), ("channels/a/depth", b"")):
        heard.put(figure)
    heard.put(("channels/b/depth", b""))
    assert collect(heard, "channels") == {"channels": 1}
