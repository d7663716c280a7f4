"""`tidegate subscribe` and `tidegate uplink` with a running gateway."""

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.cli.subscribe import harmless
from gateway.mqtt.packets import PubAck, Publish
from tests.cli.conftest import Command, MakeGateway
from tests.support.processes.gateway_process import COMMAND, GatewayProcess
from tests.support.raw_client import Clients
from tests.support.waiting import SECONDS


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """Give a gateway with an uplink into a directory."""
    running = GatewayProcess(tmp_path_factory.mktemp("gateway"), "[uplink]\n")
    running.start()
    yield running
    running.kill()


def url(gateway: GatewayProcess) -> str:
    return f"mqtt://127.0.0.1:{gateway.port}"


def listening(gateway: GatewayProcess, *arguments: str) -> "subprocess.Popen[str]":
    """Return `tidegate subscribe` with these arguments, with its output to be read."""
    return subprocess.Popen(
        [str(COMMAND), "subscribe", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


async def say_until_heard(
    gateway: GatewayProcess, process: "subprocess.Popen[str]", *messages: tuple[str, bytes]
) -> str:
    """Publish retained messages, which a subscriber gets whenever it comes; return a line."""
    clients = Clients(gateway.port)
    client = await clients.connect("p")
    for topic, payload in messages:
        await client.send(Publish(topic, payload, 1, retain=True, packet_id=1))
        assert isinstance(await client.receive(), PubAck)
    await clients.close()
    assert process.stdout is not None
    return process.stdout.readline()


@pytest.mark.uncovered
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_subscribe_prints_messages_until_it_is_ended(
    gateway: GatewayProcess, number: signal.Signals
) -> None:
    process = listening(gateway, "print/#", url(gateway))
    message = ("print/a", b"21.5 \xc2\xb0C \xff")
    assert await say_until_heard(gateway, process, message) == "print/a 21.5 °C \\xff\n"
    process.send_signal(number)
    _, errors = process.communicate(timeout=SECONDS)
    assert process.returncode == (0 if number == signal.SIGTERM else 130)
    assert not errors


async def test_subscribe_with_a_filter(gateway: GatewayProcess) -> None:
    process = listening(gateway, "filter/+", url(gateway), "--where", "payload.value > 20")
    messages = ("filter/a", b'{"value":19}'), ("filter/b", b'{"value":21}')
    assert await say_until_heard(gateway, process, *messages) == 'filter/b {"value":21}\n'
    process.terminate()
    process.communicate(timeout=SECONDS)


async def test_the_url_may_come_first(gateway: GatewayProcess) -> None:
    process = listening(gateway, url(gateway))
    message = ("sensors/n/temperature", b"21")
    assert await say_until_heard(gateway, process, message) == "sensors/n/temperature 21\n"
    process.terminate()
    process.communicate(timeout=SECONDS)


async def test_subscribe_ends_when_nobody_listens_to_it(gateway: GatewayProcess) -> None:
    process = listening(gateway, "pipe/#", url(gateway))
    assert await say_until_heard(gateway, process, ("pipe/a", b"1")) == "pipe/a 1\n"
    assert process.stdout is not None
    process.stdout.close()
    clients = Clients(gateway.port)
    client = await clients.connect("p")
    for number in range(2):
        await client.send(Publish(f"pipe/{number}", b"2"))
    assert not await client.waiting()
    await clients.close()
    assert process.wait(SECONDS) == -signal.SIGPIPE
    assert process.stderr is not None
    assert not process.stderr.read()
    process.stderr.close()


@pytest.mark.uncovered
@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["a/#/b"], "topic filter 'a/#/b' has a # that is not its whole last level"),
        (["a", "--where", "payload.value >"], "the gateway refuses 'a': $where:15: "),
    ],
)
def test_subscribe_says_why_it_is_refused(
    gateway: GatewayProcess, tidegate: Command, arguments: list[str], part: str
) -> None:
    done = tidegate("subscribe", arguments[0], url(gateway), *arguments[1:])
    assert done.returncode == 2
    assert done.stderr.startswith(f"tidegate: {part}")
    assert done.stderr.count("\n") == 1


@pytest.mark.uncovered
@pytest.mark.parametrize("action", ["pause", "resume"])
def test_the_uplink_is_told(gateway: GatewayProcess, tidegate: Command, action: str) -> None:
    done = tidegate("uplink", action, url(gateway))
    assert (done.returncode, done.stdout, done.stderr) == (0, f"uplink: {action}\n", "")
    assert f"uplink {action}, requested by client" in gateway.log()


@pytest.mark.uncovered
def test_a_gateway_without_an_uplink_refuses(tidegate: Command, bare: GatewayProcess) -> None:
    done = tidegate("uplink", "pause", url(bare))
    assert done.returncode == 2
    assert done.stderr == (
        f"tidegate: the gateway at {url(bare)} did not pause its uplink: there is none\n"
    )


@pytest.mark.uncovered
@pytest.mark.parametrize("command", [["subscribe", "a"], ["uplink", "pause"]])
def test_no_gateway(tidegate: Command, command: list[str]) -> None:
    done = tidegate(*command, "mqtt://127.0.0.1:1")
    assert done.returncode == 2
    assert done.stderr.startswith("tidegate: no gateway at mqtt://127.0.0.1:1: ")
    assert done.stderr.count("\n") == 1


def test_a_wrong_password_is_told_at_once(
    make_gateway: MakeGateway, tidegate: Command, tmp_path: Path
) -> None:
    (tmp_path / "passwords").write_text("")
    gateway = make_gateway(tmp_path, f"[[listener]]\npassword_file = '{tmp_path / 'passwords'}'\n")
    gateway.start()
    for command in (["subscribe", "a"], ["uplink", "pause"]):
        done = tidegate(*command, url(gateway), "--username", "anna")
        assert done.returncode == 2
        assert done.stderr.endswith("Bad user name or password\n")
        assert done.stderr.count("\n") == 1
    assert gateway.stop() == 0


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('{"value":21,"unit":"°C"}', '{"value":21,"unit":"°C"}'),
        ("a\tb", "a\tb"),
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("two\nlines\r", "two\\nlines\\r"),
        ("\u202egnp", "\\u202egnp"),
    ],
)
def test_what_is_printed_drives_no_terminal(text: str, shown: str) -> None:
    assert harmless(text) == shown
