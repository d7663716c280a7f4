"""What an operator sees of a running gateway: status, clients, queues, rules and events."""

import asyncio
import json
import signal
import subprocess
from collections.abc import AsyncIterator
from typing import Any

import pytest

from gateway.cli.local_broker import client_id_of
from gateway.cli.operate import (
    EXIT,
    client_lines,
    event_line,
    reload_lines,
    since,
    status_lines,
    table,
    topic_lines,
    when,
)
from gateway.cli.top import FIGURES, top_lines
from gateway.errors import TidegateError
from gateway.mqtt.packets import Disconnect, PubAck, Publish
from gateway.mqtt.properties import Properties
from tests.cli.conftest import Command
from tests.support.processes.gateway_process import COMMAND, GatewayProcess
from tests.support.raw_client import Clients
from tests.support.waiting import SECONDS

CONFIG = """
[broker]
remembered_topics = 100
[gateway]
id = "barn"
[[uplink]]
directory = "landing"
[[uplink.rule]]
topic = "sensors/#"
where = "payload.value > 20"
"""


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Any:
    running = GatewayProcess(tmp_path_factory.mktemp("gateway"), CONFIG)
    running.start()
    yield running
    running.kill()


@pytest.fixture
async def clients(gateway: GatewayProcess) -> AsyncIterator[Clients]:
    made = Clients(gateway.port)
    yield made
    await made.close()


class Asker:
    def __init__(self, gateway: GatewayProcess, tidegate: Command) -> None:
        self._url = f"mqtt://127.0.0.1:{gateway.port}"
        self._tidegate = tidegate

    def __call__(self, *words: str, status: int = 0) -> str:
        done = self._tidegate(*words, "--url", self._url)
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout or done.stderr

    def json(self, *words: str) -> Any:
        return json.loads(self(*words, "--json"))


@pytest.fixture
def ask(gateway: GatewayProcess, tidegate: Command) -> Asker:
    return Asker(gateway, tidegate)


async def leave_something(clients: Clients) -> None:
    away = await clients.connect("away", properties=Properties(session_expiry_interval=1_000))
    await away.subscribe("sensors/#", 1)
    await away.send(Disconnect())
    publisher = await clients.connect("pub\x07", username="anna")
    for number, payload in enumerate((b'{"value":1}', b'{"value":30}'), 1):
        await publisher.send(Publish("sensors/x", payload, 1, packet_id=number))
        assert isinstance(await publisher.receive(), PubAck)


async def test_who_is_there_what_waits_and_what_rules_took(clients: Clients, ask: Asker) -> None:
    await leave_something(clients)
    first, *lines = ask("client", "list").splitlines()
    assert first.split()[:4] == ["client", "user", "address", "mqtt"]
    assert any(line.startswith("away") and " 2 " in line for line in lines)
    assert any(line.startswith("pub\\x07") and "anna" in line for line in lines)
    assert [each["id"] for each in ask.json("client", "list", "--state", "offline")] == ["away"]
    assert ask.json("client", "list", "--user", "anna", "--match", "pub*")[0]["user"] == "anna"
    rated = ask("client", "list", "--sort", "received_rate", "--limit", "1").splitlines()
    assert len(rated) == 2
    assert "/s" in rated[1]
    shown = ask("client", "show", "away")
    assert "subscription      sensors/#, QoS 1" in shown
    assert ": DISCONNECT" in shown
    queues = ask("queue", "list")
    assert [line.split()[0] for line in queues.splitlines()] == [
        *("kind", "uplink", "delayed", "session")
    ]
    assert ask.json("queue", "list", "--kind", "session")[0]["depth"] == 2
    assert "payload.value > 20" in ask("rule", "list")
    assert ask.json("rule", "list")[0]["counters"]["passed"] == 1


async def test_status_is_ten_lines_and_its_exit_status_is_for_cron(
    clients: Clients, ask: Asker, tidegate: Command
) -> None:
    lines = ask("status").splitlines()
    assert len(lines) == 9
    assert lines[0].startswith("well        barn, up ")
    assert lines[1].startswith("uplink      connected, 0 wait, to ")
    assert ask.json("status")["verdict"] == "well"
    url = f"mqtt://127.0.0.1:{1}"
    assert tidegate("status", "--url", url).returncode == 2


async def test_a_client_is_kicked_and_the_events_say_by_whom(clients: Clients, ask: Asker) -> None:
    victim = await clients.connect("victim")
    said = ask("client", "kick", "victim", "--reason", "too loud")
    assert said.startswith("client victim at 127.0.0.1:")
    (packet,) = await victim.until_closed()
    assert isinstance(packet, Disconnect)
    assert (packet.reason_code, packet.properties.reason_string) == (0x98, "too loud")
    await clients.connect("other", properties=Properties(session_expiry_interval=1_000))
    assert "0 messages with it" in ask("client", "kick", "other", "--drop")
    events = ask("events", "--since", "1h", "--kind", "order")
    assert "order client 'victim': too loud: requested by client 'tidegate-" in events
    output = [json.loads(line) for line in ask("events", "--json").splitlines()]
    assert [event["id"] for event in output] == sorted(event["id"] for event in output)
    assert output[0]["kind"] == "start"
    assert "'victim' is not connected" in ask("client", "kick", "victim", status=2)
    assert "--since 'x' is not 90s" in ask("events", "--since", "x", status=2)
    assert "is not a number from 1" in ask("events", "--limit", "0", status=2)


async def test_a_reload_says_what_became_of_each_change(
    gateway: GatewayProcess, ask: Asker
) -> None:
    assert ask("reload") == "nothing has changed in {}\n".format(gateway.folder / "gateway.toml")
    gateway.configure(CONFIG.replace("> 20", "> 30") + '[[channel]]\nname = "a"\nfilter = "b"\n')
    said = ask("reload").splitlines()
    assert said == [
        "changed         channel[0] is new",
        'changed         uplink.rule[0].where: "payload.value > 20" -> "payload.value > 30"',
    ]
    gateway.configure(CONFIG.replace("barn", "shed") + "[log]\nlevel = 'info'\n[[uplink")
    assert ask("reload", status=1).startswith("refused         ")
    gateway.configure(CONFIG.replace('"barn"', '"shed"'))
    lines = ask("reload", status=3)
    assert 'needs a restart gateway.id: "barn" -> "shed" (it names the gateway' in lines
    assert "changed         channel[0] is gone" in lines
    gateway.configure(CONFIG)
    assert ask.json("reload")["counts"]["restart"] == 0
    events = ask("events", "--kind", "reload")
    assert "info    reload channel[0], uplink.rule[0].where: requested by client" in events
    assert "error   reload refused: requested by client" in events


def test_a_reload_of_more_than_is_shown_counts_the_rest() -> None:
    row = {"key": "a", "old": 1, "new": 2}
    counts = {"changed": 5, "restart": 1, "refused": 0}
    answer = {"file": "f", "refused": [], "changed": [row], "files": ["users have changed"]}
    answer["warnings"] = ["anybody may connect"]
    lines = list(reload_lines({**answer, "restart": [{**row, "reason": "r"}], "counts": counts}))
    assert lines == [
        "changed         a: 1 -> 2",
        "needs a restart a: 1 -> 2 (r)",
        "changed         users have changed",
        "warning         anybody may connect",
        "changed         4 more",
    ]


def following(gateway: GatewayProcess) -> "subprocess.Popen[str]":
    url = f"mqtt://127.0.0.1:{gateway.port}"
    command = [str(COMMAND), "events", "--follow", "--kind", "order", "--url", url]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


async def test_events_are_followed(gateway: GatewayProcess, clients: Clients, ask: Asker) -> None:
    process = following(gateway)
    try:
        await clients.connect("followed")
        ask("client", "kick", "followed")
        assert process.stdout is not None
        while "'followed'" not in (line := process.stdout.readline()):
            assert line
    finally:
        process.kill()
        process.communicate()


STATUS = {
    "verdict": "trouble",
    "troubles": ["the disk is full"],
    "gateway": "barn",
    "version": "1",
    "build": "plain",
    "uptime_seconds": 300,
    "uplinks": [
        {
            "name": "a",
            "state": "disconnected",
            "error": "refused",
            "destination": "d",
            "waiting": 4,
            "next_attempt_seconds": 12,
        }
    ],
    "outbox": {"messages": 4, "bytes": 2_000, "oldest_seconds": 7_200},
    "survives_seconds": 90_000,
    "channels_stuck": [
        {
            "name": "jobs",
            "state": "open",
            "depth": 3,
            "inflight": 2,
            "consumers": 1,
            "oldest_seconds": 90,
        }
    ],
    "channels_waiting": 3,
    "clients": {"connected": 1, "offline": 2},
    "free_bytes": None,
    "memory_bytes": 1,
    "memory_limit": 2,
    "alarms": [{"name": "storage", "since": 0, "text": "full"}],
    "silent": [{"kind": "serial", "name": "boiler", "state": "silent", "error": "nothing"}],
}


def test_what_is_wrong_stands_in_the_status() -> None:
    lines = "\n".join(status_lines(STATUS))
    for text in (
        "trouble     the disk is full (barn, up 5.0 min)",
        "uplink      a disconnected (refused), next try in 12 s, 4 wait, to d",
        "waiting     4 messages, 2.0 kB, the oldest for 2.0 h; enough for an outage of 25.0 h",
        "channels    3 messages wait",
        "channel     jobs open, 1 subscribed, 3 wait, 2 unacknowledged for 90 s",
        "disk        in memory only",
        f"alarm       storage, since {when(0)}: full",
        "silent      serial boiler silent: nothing",
    ):
        assert text in lines, text
    nothing = {**STATUS, "outbox": None, "uplinks": [], "troubles": [], "verdict": "attention"}
    assert "waiting     nothing is sent to a fleet" in "\n".join(status_lines(nothing))
    assert EXIT == {"well": 0, "attention": 1, "trouble": 1}


def test_log_levels_are_listed_and_changed(ask: Asker) -> None:
    lines = ask("log", "level").splitlines()
    assert [line.split() for line in lines[:3]] == [
        ["part", "level"],
        ["all", "info"],
        ["app", "as", "all"],
    ]
    assert ask.json("log", "level", "server", "debug")["server"] == "debug"
    assert "server   debug" in ask("log", "level")
    assert "needs part and level" in ask("log", "level", "server", status=2)
    assert "invalid choice" in ask("log", "level", "mqtt", "debug", status=2)


async def test_top_says_in_one_round_what_costs_most(clients: Clients, ask: Asker) -> None:
    loud = await clients.connect("loud")

    async def flood() -> None:
        for number in range(2_000):
            await loud.send(Publish("load/t", b"%d" % number))
            await asyncio.sleep(0.002)

    flooding = asyncio.get_running_loop().create_task(flood())
    found = await asyncio.to_thread(ask.json, "top", "--once")
    text = await asyncio.to_thread(ask, "top", "--once", "--rows", "1")
    flooding.cancel()
    assert found["clients"][0]["id"] == "loud"
    assert found["clients"][0]["received_rate"] > 1
    assert found["topics"][0]["topic"] == "load/t"
    assert found["resident_bytes"] > 10_000_000
    assert found["uplinks"][0]["waiting"] >= 0
    lines = text.splitlines()
    assert " barn: " in lines[0]
    assert any(line.startswith("loud") and line.endswith("/s") for line in lines)
    assert sum(line.endswith("/s") for line in lines[4:]) == 1, "one client"


def test_top_goes_on_until_it_is_interrupted(gateway: GatewayProcess) -> None:
    command = [str(COMMAND), "top", "--json", "--url", f"mqtt://127.0.0.1:{gateway.port}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watching:
        assert watching.stdout is not None
        rounds = [json.loads(watching.stdout.readline()) for _ in range(2)]
        watching.send_signal(signal.SIGINT)
        assert watching.wait(SECONDS) == 130
    assert rounds[0]["time"] < rounds[1]["time"]


def test_a_round_of_which_little_is_known() -> None:
    found = {
        **dict.fromkeys(FIGURES),
        "time": 0,
        "gateway": "barn",
        "verdict": "well",
        "resident_bytes": 0,
        "memory_bytes": 0,
        "connected": 0,
        "offline": 1,
        "uplinks": [{"name": "a", "state": "paused", "waiting": 3}],
        "bridges": [{"kind": "serial", "name": "boiler", "state": "open"}],
        "clients": [{"id": "gone"}],
        "topics": None,
    }
    lines = "\n".join(top_lines(found))
    for text in (
        "cpu         ?; memory 0 bytes, clients hold 0 bytes",
        "messages    in ?, out ?",
        "uplink      a paused, 3 wait",
        "bridge      serial boiler open",
        "topics are not remembered: [broker] remembered_topics is 0",
    ):
        assert text in lines, text


async def test_topics_have_their_values_and_receivers(clients: Clients, ask: Asker) -> None:
    publisher = await clients.connect("sensor")
    for number, (topic, payload) in enumerate((("t/a", b"21.5"), ("t/b", b"\xff")), 1):
        await publisher.send(Publish(topic, payload, 1, retain=True, packet_id=number))
        assert isinstance(await publisher.receive(), PubAck)
    await publisher.subscribe("t/a")
    first, *lines = ask("topic", "list", "--match", "t/#").splitlines()
    assert first.split()[:3] == ["topic", "value", "age"]
    assert [line.split()[:2] for line in lines] == [["t/a", "21.5"], ["t/b", "1"]]
    assert ask.json("topic", "list", "--silent", "--match", "t/#") == []
    shown = ask("topic", "show", "t/a")
    assert "value             21.5" in shown
    assert "retained          21.5" in shown
    assert "receivers         sensor" in shown
    assert "no text" in ask("topic", "show", "t/b")


def test_a_topic_that_is_not_known_says_why() -> None:
    answer = {
        "topic": None,
        "remembered": False,
        "receivers": [],
        "filtered": ["c"],
        "retained": None,
    }
    assert list(topic_lines(answer)) == [
        "its last message is unknown: [broker] remembered_topics is 0",
        "receivers         none that get all of it",
        "perhaps           c, by $where or group",
    ]


def test_a_client_that_is_gone_has_its_ends() -> None:
    answer = {
        "client": None,
        "ends": [{"time": 0, "address": "a:1", "seconds": 1.5, "reason": "taken"}],
    }
    first, last = client_lines(answer)
    assert first == "it is not here and has no session"
    assert last.endswith("from a:1 after 1.5 s: taken")
    more = {
        "client": None,
        "ends": [],
        "aliases": {"maximum": 5},
        "oldest_seconds": 3.0,
        "drops": {"for_others": 1_200},
        "subscriptions": [{"filter": "a", "qos": 1, "where": "x = 1", "passed": 7}],
    }
    assert list(client_lines(more))[1:] == [
        "aliases maximum   5",
        "oldest waits      3.0 s",
        "lost, for others          1,200",
        "subscription      a, QoS 1 $where x = 1: 7 passed",
    ]


def test_an_event_says_how_often_and_how_long() -> None:
    event = {
        "id": 1,
        "time": 0,
        "until": 1_000,
        "severity": "warning",
        "kind": "refused",
        "subject": "c",
        "text": "no",
        "count": 3,
    }
    assert event_line(event).endswith(f"refused c: no (3 times, last {when(1_000)})")
    alarm = {**event, "kind": "alarm", "count": 1}
    assert event_line(alarm).endswith(f"(until {when(1_000)})")
    assert event_line({**alarm, "until": None}).endswith("alarm c: no (lasts)")


def test_a_person_says_since_when() -> None:
    assert since("2h", 7_200.0) == 0
    assert since("90s", 100.0) == 10_000
    assert since("1970-01-02T00:00:00+00:00", 0.0) == 86_400_000
    for wrong in ("", "2w", "yesterday", "99999999999999d", "2026-13-01"):
        with pytest.raises(TidegateError, match="is not 90s"):
            since(wrong, 0.0)


def test_a_table_is_harmless_and_as_wide_as_it_needs() -> None:
    assert table([["a", "b"], ["long\x1b[2J", ""]]) == ["a            b", "long\\x1b[2J"]


def test_the_client_identifier_says_who_asks() -> None:
    assert client_id_of({"SUDO_USER": "anna", "USER": "root"}).startswith("tidegate-anna-")
    assert client_id_of({}).startswith("tidegate-")
