"""`tidegate rule try` and `apply`, with a running gateway, a Mosquitto as one fleet of two."""

import asyncio
import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.cli.rule import difference_line, trial_lines
from gateway.mqtt.packets import PubAck, Publish
from tests.cli.conftest import Command, MakeGateway
from tests.support.processes.gateway_process import COMMAND, GatewayProcess
from tests.support.processes.mosquitto import Mosquitto
from tests.support.raw_client import Clients
from tests.support.waiting import SECONDS

pytestmark = [pytest.mark.mosquitto]

CONFIG = """\
[gateway]
id = "barn"

[[uplink]]   # far away
name = "cloud"
url = "mqtt://127.0.0.1:{port}"

# what is warm
[[uplink.rule]]
topic = "sensors/#"
where = "payload.value > 20"   # degrees

[[uplink]]
name = "plant"
directory = "landing"
"""


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mosquitto]:
    broker = Mosquitto(tmp_path_factory.mktemp("fleet"))
    broker.start()
    yield broker
    broker.kill()


@pytest.fixture
def gateway(fleet: Mosquitto, tmp_path: Path, make_gateway: MakeGateway) -> GatewayProcess:
    folder = tmp_path / "gateway"
    folder.mkdir()
    return make_gateway(folder, CONFIG.format(port=fleet.port)).start()


def url(gateway: GatewayProcess) -> str:
    return f"mqtt://127.0.0.1:{gateway.port}"


async def publish(gateway: GatewayProcess, *values: float, topic: str = "sensors/boiler") -> None:
    clients = Clients(gateway.port)
    client = await clients.connect("p")
    for number, value in enumerate(values, 1):
        await client.send(Publish(topic, b'{"value":%a}' % value, 1, packet_id=number))
        assert isinstance(await client.receive(), PubAck)
    await clients.close()


def trying(gateway: GatewayProcess, *words: str) -> "subprocess.Popen[str]":
    command = [str(COMMAND), "rule", "try", *words, "--url", url(gateway)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


async def begun(gateway: GatewayProcess) -> None:
    """Return when the gateway has begun a trial."""
    while "trial 'tidegate-" not in gateway.log():  # noqa: ASYNC110 - of another process
        await asyncio.sleep(0.02)


async def test_differences_are_printed_as_they_come_and_a_table_at_the_end(
    gateway: GatewayProcess,
) -> None:
    process = trying(gateway, "cloud", "0", "--where", "payload.value > 60")
    try:
        await begun(gateway)
        await publish(gateway, 10, 30, 70)
        assert process.stdout is not None
        line = await asyncio.to_thread(process.stdout.readline)
        assert 'present only sensors/boiler  {"value":30}' in line
        process.send_signal(signal.SIGINT)
        output, errors = await asyncio.to_thread(process.communicate, timeout=SECONDS)
    finally:
        process.kill()
    assert process.returncode == 0, errors
    lines = [" ".join(each.split()) for each in output.splitlines()]
    assert "where payload.value > 20 payload.value > 60" in lines
    assert "messages 2 1" in lines
    assert "taken by it only 1 0" in lines
    assert lines[-1].startswith("3 messages on their topics in ")
    assert "a day fewer (ended by client 'tidegate-" in lines[-1]


async def test_a_new_rule_is_tried_for_some_seconds_and_told_to_programs(
    gateway: GatewayProcess,
) -> None:
    words = ("plant", "new", "--topic", "orders/#", "--qos", "0", "--seconds", "2", "--json")
    process = trying(gateway, *words)
    await begun(gateway)
    await publish(gateway, 1, topic="orders/1")
    output, errors = await asyncio.to_thread(process.communicate, timeout=SECONDS)
    assert process.returncode == 0, errors
    trial: dict[str, Any] = json.loads(output)
    assert (trial["state"], trial["reason"]) == ("over", "its time is over")
    assert (trial["new"]["uplinks"], trial["new"]["qos"]) == (["plant"], 0)
    assert trial["new"]["messages"] == 1
    # it would stand for the rule that nobody wrote
    assert (trial["old"]["uplinks"], trial["old"]["topic"]) == (["plant"], "sensors/#")


async def test_a_rule_is_applied_and_the_gateway_reads_it(
    gateway: GatewayProcess, fleet: Mosquitto, tidegate: Command
) -> None:
    file = gateway.folder / "gateway.toml"
    before = file.read_text()
    words = ("cloud", "0", "--where", "payload.value > 60", "--url", url(gateway))
    done = tidegate("rule", "apply", *words)
    assert done.returncode == 0, done.stderr
    assert file.read_text() == before.replace("> 20", "> 60")
    first, second, third, *more = done.stdout.splitlines()
    assert first == '-where = "payload.value > 20"   # degrees'
    assert second == '+where = "payload.value > 60"   # degrees'
    assert third == f"{file}: written"
    assert any("uplink[0].rule[0].where" in line for line in more)
    listed = tidegate("rule", "list", "--url", url(gateway)).stdout
    assert "payload.value > 60" in listed
    again = tidegate("rule", "apply", *words)
    assert "is so already" in again.stdout


def test_what_a_variable_of_the_service_sets_is_told(
    tmp_path: Path, make_gateway: MakeGateway, tidegate: Command
) -> None:
    folder = tmp_path / "set"
    folder.mkdir()
    gateway = make_gateway(folder, '[uplink]\ndirectory = "l"\n[[uplink.rule]]\ntopic = "a"\n')
    gateway.start({"TIDEGATE__UPLINK__RULE__0__TOPIC": "b"})
    done = tidegate("rule", "apply", "0", "--topic", "c", "--url", url(gateway))
    assert done.returncode == 1, done.stderr
    assert "has no rule 0@" in done.stdout
    assert "does a variable of its service set the rules?" in done.stdout


@pytest.mark.uncovered
def test_what_is_wrong_is_told_in_one_line(
    gateway: GatewayProcess, tidegate: Command, tmp_path: Path
) -> None:
    before = (gateway.folder / "gateway.toml").read_text()
    for command in ("try", "apply"):
        for words, said in (
            (("cloud", "0", "--where", "payload.value >"), "uplink[0].rule[0].where = "),
            (("clod", "0"), 'there are cloud, plant; did you mean "cloud"?'),
            (("0",), "uplink must be given; there are cloud, plant"),
            (("a", "b", "c"), "one uplink and one rule, not a b c"),
            (("cloud", "0", "--unset", "topic"), "uplink[0].rule[0].topic: must be given"),
        ):
            done = tidegate("rule", command, *words, "--url", url(gateway))
            assert done.returncode == 2, (words, done.stdout)
            assert said in done.stderr
            assert len(done.stderr.splitlines()) == 1
    assert (gateway.folder / "gateway.toml").read_text() == before
    other = tmp_path / "other.toml"
    other.write_text('[uplink]\ndirectory = "l"\n')
    edit = ("new", "--topic", "a", "--config", str(other))
    done = tidegate("rule", "apply", *edit, "--url", url(gateway))
    assert done.returncode == 1
    assert "not this file: it is not reloaded" in done.stdout


def test_without_a_gateway_the_file_is_written_all_the_same(
    tidegate: Command, tmp_path: Path
) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text('[uplink]\ndirectory = "l"\n')
    words = ("rule", "apply", "new", "--topic", "a/#", "--retain", "true", "--config", str(file))
    done = tidegate(*words)
    assert done.returncode in (0, 1), done.stderr  # 1: a gateway of this machine runs all the same
    assert file.read_text().endswith('\n[[uplink.rule]]\ntopic = "a/#"\nretain = true\n')
    assert tidegate(*words, "--url", "mqtt://127.0.0.1:1").returncode == 2


SIDE = {
    "rule": "0@1",
    "topic": "a",
    "where": None,
    "target": None,
    "stream": "main",
    "lane": "live",
    "retain": False,
    "qos": 1,
    "messages": 1_200,
    "bytes": 2,
    "bytes_a_day": 2_000_000,
    "null": 0,
    "gap": {"topic": "a", "seconds": 61.25},
}


def test_a_trial_is_told_as_a_table() -> None:
    trial = {
        "old": None,
        "new": {**SIDE, "qos": 0},
        "only_old": 0,
        "only_new": 1,
        "messages": 1_200,
        "elapsed_seconds": 60.0,
        "reason": "",
    }
    lines = [" ".join(each.split()) for each in trial_lines(trial)]
    assert "largest gap 61.2 s, a" in lines
    assert lines[-1] == "1,200 messages on their topics in 60.0 s; 2.0 MB a day more"
    same = {**trial, "old": SIDE, "new": SIDE}
    assert list(trial_lines(same))[-1].endswith("; as many bytes a day")
    assert "qos 1" not in [" ".join(each.split()) for each in trial_lines(same)]


def test_a_difference_is_harmless_on_a_terminal() -> None:
    row = {"number": 1, "time": 0, "topic": "a\x1b", "size": 3, "taken_by": "new"}
    assert "edited only  a\\x1b  3 bytes, no text" in difference_line(row)
    assert len(difference_line({**row, "payload": "x" * 256})) < 120
