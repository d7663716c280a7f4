"""The command as a person starts it: on a pseudo-terminal, against a real gateway."""

import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.publish import single

from tests.support.ports import free_port
from tests.support.waiting import SECONDS, listens, until
from tests.tui.terminal import Terminal
from tui.app import run

TIDEGATE = [sys.executable, "-c", "import gateway.cli.main as cli; raise SystemExit(cli.main())"]


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[int]:
    """The port of a running gateway with an uplink to a directory."""
    port = free_port()
    configuration = tmp_path / "gateway.toml"
    configuration.write_text(
        '[gateway]\nid = "barn"\n'
        f'[[listener]]\nhost = "127.0.0.1"\nport = {port}\n'
        "[broker]\nsys_interval = 1\n"
        f'[uplink]\ndirectory = "{tmp_path / "landing"}"\n'
    )
    data = str(tmp_path / "data")
    arguments = ["run", "--config", str(configuration), "--data", data]
    process = subprocess.Popen(
        [*TIDEGATE, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        until(lambda: listens(port), "the gateway listens")
        yield port
    finally:
        process.terminate()
        process.wait(SECONDS)


@pytest.fixture
def terminal(gateway: int) -> Iterator[Terminal]:
    opened = Terminal([*TIDEGATE, "tui", f"mqtt://127.0.0.1:{gateway}"])
    yield opened
    opened.close()


@pytest.mark.uncovered
def test_a_session_with_a_real_gateway(gateway: int, terminal: Terminal) -> None:
    terminal.read_until("barn")
    terminal.read_until("uplink")
    single(
        "sensors/n1/temperature", '{"value":21.5,"unit":"°C"}', hostname="127.0.0.1", port=gateway
    )
    terminal.read_until("n1/temperature")
    terminal.read_until("21.5")
    terminal.type("4")
    terminal.read_until("pause the uplink")
    terminal.type("p")
    terminal.read_until("Pause the uplink?")
    terminal.type("y")
    terminal.read_until("the uplink is paused")
    terminal.type("q")
    assert terminal.end() == 0


@pytest.mark.uncovered
def test_a_terminal_that_has_ended_ends_the_command(gateway: int) -> None:
    """Also where nobody tells it by a signal, as under nohup."""
    hangup = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        opened = Terminal([*TIDEGATE, "tui", f"mqtt://127.0.0.1:{gateway}"])
    finally:
        signal.signal(signal.SIGHUP, hangup)
    opened.read_until("barn")
    opened.hang_up()
    began = time.monotonic()
    assert opened.end() != 0
    assert time.monotonic() - began < 1


@contextmanager
def busy(port: int) -> Iterator[None]:
    """Have 2,000 messages a second come on 5,000 topics."""
    client, stopping = Client(CallbackAPIVersion.VERSION2), threading.Event()
    client.connect("127.0.0.1", port)
    client.loop_start()

    def publish() -> None:
        number = 0
        while not stopping.wait(0.05):
            for _ in range(100):
                number += 1
                topic = f"sensors/n{number % 5_000 // 10}/t{number % 10}"
                client.publish(topic, b'{"value":%d}' % (number * 7 % 50))

    publisher = threading.Thread(target=publish)
    publisher.start()
    try:
        yield
    finally:
        stopping.set()
        publisher.join()
        client.disconnect()
        client.loop_stop()


@pytest.mark.uncovered
def test_a_key_is_answered_on_a_slow_line_of_a_busy_gateway(gateway: int) -> None:
    """At 2,400 bytes a second within half a second, also while the screen before is written."""
    keys = (("4", "[4 Queues"), ("?", "keys and signs"), ("1", "[1 Now"), ("2", "[2 Topics"))
    opened = Terminal([*TIDEGATE, "tui", f"mqtt://127.0.0.1:{gateway}"], 80, 24, rate=2_400)
    with busy(gateway):
        opened.read_until("● up")
        for attempt in range(4):
            took = []
            for key, text in keys:
                opened.type(key)
                took.append(opened.read_until(text))
            if statistics.median(took) < 0.5:
                break
            assert attempt < 3, took
        opened.type("q")
        assert opened.end() == 0
    opened.close()


@pytest.mark.uncovered
def test_a_terminal_that_does_not_say_where_its_cursor_is(gateway: int) -> None:
    opened = Terminal([*TIDEGATE, "tui", f"mqtt://127.0.0.1:{gateway}"], answers=False)
    opened.read_until("● up")
    opened.type("q")
    assert opened.end() == 0
    opened.close()


@pytest.mark.parametrize("url", ["localhost:1883", "http://127.0.0.1", "mqtt://u:secret@h:x"])
def test_a_url_that_cannot_be_used(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(url) == 2
    output = capsys.readouterr().err
    assert output.startswith("tidegate tui: URL ")
    assert output.count("\n") == 1
    assert "secret" not in output


def test_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("mqtt://127.0.0.1:1") == 2
    assert capsys.readouterr().err == (
        "tidegate tui: standard input and error must be a terminal\n"
    )


def test_recordings_that_cannot_be_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, text, problem in (
        ("empty", "", "it is empty"),
        ("odd", "[1]\n", "line 1 is no line of one"),
        ("binary", "\x00", "line 1 is no line of one"),
    ):
        (tmp_path / name).write_text(text)
        assert run(replay=tmp_path / name) == 2
        assert problem in capsys.readouterr().err
    assert run(replay=tmp_path / "nothing") == 2
    assert "No such file" in capsys.readouterr().err
    assert run(record=tmp_path / "no" / "folder") == 2
    assert "No such file" in capsys.readouterr().err
