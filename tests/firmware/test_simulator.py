"""The simulator as a program: its link, its line, and every way it ends."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.bridges.serial.frame_body import (
    ReadingsFrame,
    Status,
    decode_frame,
    encode_acknowledgement,
)
from gateway.bridges.serial.serial_bridge import KIND
from gateway.bridges.serial.serial_frames import FrameDecoder, encode_frame
from gateway.bridges.serial.serial_settings import SerialSettings
from gateway.bridges.supervision.supervisor import Supervisor
from gateway.config.bridges import BridgeConfig
from gateway.counters import Counters
from tests.support import waiting
from tests.support.disk.storage import until
from tests.support.nodes.bridges import Gateway
from tests.support.nodes.micropython import FIRMWARE

PROGRAM = [sys.executable, str(FIRMWARE / "simulator.py")]


@contextlib.contextmanager
def simulator(
    port: Path, *arguments: str, stdin: int = subprocess.DEVNULL
) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [*PROGRAM, "--node", "n1", "--port", str(port), *arguments],
        stdin=stdin,
        stderr=subprocess.PIPE,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=waiting.SECONDS)


@pytest.fixture
def port(tmp_path: Path) -> Path:
    return tmp_path / "var" / "node"


def read_frames(terminal: int, count: int) -> list[ReadingsFrame]:
    """Return the next `count` frames; each is acknowledged."""
    decoder, frames = FrameDecoder(Counters().add), list[ReadingsFrame]()
    while len(frames) < count:
        for body in decoder.feed(os.read(terminal, 4096)):
            frame = decode_frame(body)
            assert isinstance(frame, ReadingsFrame)
            frames.append(frame)
            answer = encode_acknowledgement(Status.STORED, frame.boot, frame.sequence)
            os.write(terminal, encode_frame(answer))
    return frames


def test_frames_of_a_node_with_the_clock_of_this_computer(port: Path) -> None:
    with simulator(port, "--interval", "0.02", "--seed", "5"):
        waiting.until(port.exists, "the port is there")
        terminal = os.open(port, os.O_RDWR | os.O_NOCTTY)
        frames = read_frames(terminal, 20)
        os.close(terminal)
    assert {frame.node for frame in frames} == {"n1"}
    first_time = list(dict.fromkeys(frame.sequence for frame in frames))  # late answers: again
    assert first_time == list(range(1, len(first_time) + 1))
    assert frames[0].wall is not None
    assert abs(frames[0].wall - time.time() * 1000) < 60_000
    assert [reading.unit for reading in frames[0].readings] == ["°C", "%", "hPa"]


async def test_the_gateway_has_the_first_reading_soon(port: Path) -> None:
    """Within three seconds on a machine that has nothing else to do."""
    gateway = Gateway.make()
    supervisor = Supervisor(gateway.services)
    await supervisor.apply([BridgeConfig(KIND, "node", SerialSettings(port=str(port)))])
    with simulator(port):
        await until(lambda: bool(gateway.broker.messages))
    await supervisor.close()
    assert gateway.broker.messages[0].topic == "sensors/n1/temperature"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_it_and_the_link_goes(port: Path, number: signal.Signals) -> None:
    with simulator(port) as process:
        waiting.until(port.exists, "the port is there")
        process.send_signal(number)
        assert process.wait(timeout=waiting.SECONDS) == 0
        assert not port.is_symlink()


def test_the_end_of_its_standard_input_ends_it(port: Path) -> None:
    with simulator(port, stdin=subprocess.PIPE) as process:
        waiting.until(port.exists, "the port is there")
        assert process.stdin is not None
        process.stdin.write(b"not yet")
        process.stdin.flush()
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=0.3)
        process.stdin.close()
        assert process.wait(timeout=waiting.SECONDS) == 0
        process.stdin = None
    assert not port.is_symlink()


def test_it_ends_with_the_process_that_started_it(port: Path) -> None:
    launcher = (
        "import subprocess, sys, time; "
        "print(subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL).pid, flush=True); "
        "time.sleep(60)"
    )
    command = [sys.executable, "-c", launcher, *PROGRAM, "--node", "n1", "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as parent:
        waiting.until(port.exists, "the port is there")
        parent.kill()
    waiting.until(lambda: not port.is_symlink(), "the port is gone")


def test_it_ends_when_its_parent_was_gone_before_it_began(port: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait(timeout=waiting.SECONDS)
    with simulator(port, "--parent", str(gone.pid)) as process:
        assert process.wait(timeout=waiting.SECONDS) == 0


def test_an_older_link_is_replaced_and_not_removed_when_it_is_anothers(port: Path) -> None:
    with simulator(port) as first:
        waiting.until(port.exists, "the port is there")
        older = port.readlink()
        with simulator(port):
            waiting.until(lambda: port.readlink() != older, "another port is there")
            first.terminate()
            assert first.wait(timeout=waiting.SECONDS) == 0
            assert port.exists()


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--interval", "0"], "--interval 0.0: at least 0.001"),
        (["--node", ""], "'' has 0 bytes: 1 to 64 are allowed"),
    ],
)
def test_wrong_arguments(port: Path, arguments: list[str], reason: str) -> None:
    with simulator(port, *arguments) as process:
        _, error = process.communicate(timeout=waiting.SECONDS)
        assert process.returncode == 2
    assert reason in error.decode()
    assert not port.is_symlink()


def test_a_file_at_the_links_place_is_left_alone(port: Path) -> None:
    port.parent.mkdir()
    port.write_text("mine")
    with simulator(port) as process:
        _, error = process.communicate(timeout=waiting.SECONDS)
        assert process.returncode == 2
    assert "exists and is not a link" in error.decode()
    assert port.read_text() == "mine"


def test_a_line_that_nobody_reads_does_not_stop_it(port: Path) -> None:
    with simulator(port, "--interval", "0.001", "--waiting-bytes", "400") as process:
        waiting.until(port.exists, "the port is there")
        dropped = 0
        while not dropped:  # at the first time, unless it stood still
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(timeout=0.5)  # 500 samples and two sendings of the window
            terminal = os.open(port, os.O_RDWR | os.O_NOCTTY)
            dropped = read_frames(terminal, 30)[-1].dropped
            os.close(terminal)
