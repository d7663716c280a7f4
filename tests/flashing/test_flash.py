"""Versions on a board with a real MicroPython: installed, taken back, interrupted anywhere."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping

import pytest

from gateway.bridges.serial.frame_body import (
    Command,
    ReadingsFrame,
    Status,
    decode_frame,
    encode_acknowledgement,
    encode_command,
)
from gateway.bridges.serial.serial_frames import FrameDecoder, encode_frame
from gateway.counters import Counters
from gateway.flashing.board import Board, Progress
from gateway.flashing.errors import FlashingError
from gateway.flashing.first_reading import first_reading
from gateway.flashing.flash import Flashed, flash
from gateway.flashing.package import build_package
from gateway.flashing.port import Port, open_port, retried
from tests.support.nodes.micropython import ROOT
from tests.support.nodes.stand_in_board import StandInBoard
from tests.support.waiting import SECONDS

pytestmark = pytest.mark.micropython

SETTINGS = {"name": "barn1", "interval_ms": 200}
BROKEN = "def main(folder):\n    raise ValueError('no such sensor')\n"
HANGING = "import time\ndef main(folder):\n    while True:\n        time.sleep(1)\n"
WATCHED = """
import machine, micropython
def main(folder):
    machine.WDT(timeout=500)
    micropython.kbd_intr(-1)  # so that Ctrl-C does not help
    while True:
        pass
"""
SAVING = """
import micropython, time
def main(folder):
    try:
        print("runs")
        while True:
            time.sleep(0.1)
    except KeyboardInterrupt:
        micropython.kbd_intr(-1)
        for _ in range(12):
            print("saving")
            time.sleep(0.2)
        micropython.kbd_intr(3)
        raise
"""
ROUNDS = int(os.environ.get("TIDEGATE_FLASH_ROUNDS", "1"))


class Heard:
    """Keeps what a person would see."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.totals: list[int] = []
        self.bytes = 0

    def show(self, line: str) -> None:
        self.lines.append(line)

    @contextlib.contextmanager
    def progress(self, _what: str, total: int) -> Iterator[Progress]:
        self.totals.append(total)
        self.bytes = 0
        yield self._more

    def _more(self, count: int) -> None:
        self.bytes += count


def install(
    board: StandInBoard, settings: Mapping[str, object] | None = None, seconds: float = 20
) -> Flashed:
    return flash(Port(board.port), Heard(), settings, seconds=seconds)


def node_name(board: StandInBoard) -> str:
    reading = first_reading(Port(board.port), 20)
    assert reading is not None
    return reading.node


@pytest.mark.uncovered
def test_a_fresh_board_gives_its_first_reading(board: StandInBoard) -> None:
    heard = Heard()
    flashed = flash(Port(board.port), heard, SETTINGS, seconds=20)
    assert flashed.changed
    assert flashed.reading.node == "barn1"
    assert [each.quantity for each in flashed.reading.readings] == [
        "temperature",
        "humidity",
        "pressure",
    ]
    assert heard.totals == [heard.bytes]
    assert heard.lines[0].startswith(f"{board.port}: MicroPython 1.")
    again = install(board)
    assert (again.version, again.changed, again.reading.node) == (flashed.version, False, "barn1")
    with contextlib.closing(Board.connect(Port(board.port))) as connected:
        connected.write("/starts", b"5")  # the next start would be in safe mode
    board.tell("usb")
    changed = install(board, {**SETTINGS, "name": "barn2"})
    assert (changed.changed, changed.reading.node) == (True, "barn2")
    assert changed.reading.readings[0].quantity == "temperature"


@pytest.mark.uncovered
def test_without_the_compiler_sources_are_sent_and_said(
    board: StandInBoard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A compiled version is updated by sources, and those by a compiled one again."""
    install(board, SETTINGS)
    heard = Heard()
    with monkeypatch.context() as patched:
        patched.setattr("gateway.flashing.package.find_spec", lambda _name: None)
        updated = flash(Port(board.port), heard, seconds=20)
    assert (updated.changed, updated.reading.node) == (True, "barn1")
    assert heard.lines[1].endswith("sends sources, not compiled: mpy-cross is not installed")
    assert heard.totals[0] > 100_000
    assert install(board).changed
    other = build_package(5)
    assert "node/loop.py" in other.files
    assert other.why_sources is not None
    assert "version 5" in other.why_sources


@pytest.mark.uncovered
def test_a_version_that_fails_is_taken_back(board: StandInBoard, other_main: list[str]) -> None:
    before = install(board, SETTINGS).version
    other_main.append(BROKEN)
    with pytest.raises(FlashingError) as reported:
        install(board)
    assert f"version 2 ended within 20 s; version {before} runs again" in str(reported.value)
    assert "ValueError: no such sensor" in str(reported.value)
    assert node_name(board) == "barn1"
    other_main.append(HANGING)
    with pytest.raises(FlashingError, match="version 2 sent no reading within 1 s; version"):
        install(board, seconds=1)
    assert node_name(board) == "barn1"
    other_main.append(WATCHED)
    with pytest.raises(FlashingError, match="version 2 ended within 20 s; version"):
        install(board)
    assert node_name(board) == "barn1"
    other_main.clear()
    assert not install(board).changed


@pytest.mark.uncovered
def test_a_sensor_that_does_not_answer_is_no_first_reading(board: StandInBoard) -> None:
    """Of a first version it is told, a new one is taken back for it."""
    wired = {"driver": "bme280", "sda": 4, "scl": 5}
    nobody = {**SETTINGS, "sensors": [{**wired, "address": 0x77}]}
    with pytest.raises(
        FlashingError, match=r"sent no reading within 1 s(.|\n)*a sensor does not answer: .*EIO"
    ):
        install(board, nobody, seconds=1)
    right = {**SETTINGS, "sensors": [{**wired, "address": 0x76}]}
    before = install(board, right)
    assert before.reading.readings[0].value == 25.08
    with pytest.raises(FlashingError, match=r"runs again(.|\n)*EIO"):
        install(board, nobody, seconds=1)
    assert first_reading(Port(board.port), 20) is not None


def test_a_program_of_others_stays_unless_it_may_go(board: StandInBoard) -> None:
    with contextlib.closing(Board.connect(Port(board.port))) as connected:
        connected.write("/main.py", b"print('mine')")
    with pytest.raises(FlashingError, match=r"another program's main\.py is on this board"):
        install(board, SETTINGS)
    flash(Port(board.port), Heard(), SETTINGS, replace=True, seconds=20)
    with contextlib.closing(Board.connect(Port(board.port))) as connected:
        assert connected.read("/main.before.py") == b"print('mine')"


def test_a_board_without_settings_is_told_how_to_get_some(board: StandInBoard) -> None:
    with pytest.raises(FlashingError, match="tidegate firmware new"):
        install(board)


def runs_old_or_new(board: StandInBoard) -> None:
    """Whatever happened, after the power came back a complete version sends readings.

    A board that was just asked to wait for files does so at this start, for two minutes.
    """
    board.tell("cut")
    reading = first_reading(Port(board.port), 20)
    if reading is None:
        with contextlib.closing(Board.connect(Port(board.port))) as connected:
            assert connected.ask("print('HELD' in globals())") is True
        board.tell("cut")
    assert node_name(board) == "barn1"


@pytest.mark.uncovered
def test_power_that_fails_at_any_write_leaves_a_version(board: StandInBoard) -> None:
    install(board, SETTINGS)
    for number in range(ROUNDS):
        writes = 3 + number * 197 % 173 if ROUNDS < 100 else number
        board.tell("cut")
        settings = {**SETTINGS, "interval_ms": 201 + number}
        board.tell(f"writes {writes}")
        with contextlib.suppress(FlashingError):
            install(board, settings, seconds=3)
        runs_old_or_new(board)
        install(board, settings)


FLASH = """
import sys, json, contextlib
from gateway.flashing.flash import flash
from gateway.flashing.port import Port
class Quiet:
    def show(self, line): pass
    @contextlib.contextmanager
    def progress(self, what, total): yield lambda count: None
flash(Port(sys.argv[1]), Quiet(), json.loads(sys.argv[2]), seconds=20)
"""


@pytest.mark.uncovered
def test_flashing_that_is_killed_goes_on_where_it_stopped(board: StandInBoard) -> None:
    install(board, SETTINGS)
    for number in range(ROUNDS):
        settings = f'{{"name": "barn1", "interval_ms": {201 + number}}}'
        command = [sys.executable, "-c", FLASH, board.port, settings]
        process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(random.uniform(0.3, 2.5))
        process.send_signal(signal.SIGKILL)
        process.wait()
        runs_old_or_new(board)


@pytest.mark.uncovered
def test_a_program_that_was_half_sent_does_not_keep_the_next_out(board: StandInBoard) -> None:
    """The board waits for the rest of it, and some take Ctrl-C for a part of it."""
    with contextlib.closing(open_port(Port(board.port), 5)) as line:
        line.write(b"\r\x03\r\x01")
        assert line.read_until(b"CTRL-B to exit\r\n>").endswith(b">")
        line.write(b"\x05A\x01")
        assert line.read_until(b"\x01").endswith(b"R\x01")
        line.write(b"print('half")
    assert install(board, SETTINGS).changed


def received(port: str, seconds: float, at_least: int = 1) -> list[ReadingsFrame]:
    """Return what a gateway would take of so many seconds, each frame acknowledged.

    It waits longer for so many frames: a busy machine may pause.
    """
    decoder, frames = FrameDecoder(Counters().add), list[ReadingsFrame]()
    end = time.monotonic() + seconds
    latest = end + SECONDS
    with contextlib.closing(retried(lambda: open_port(Port(port), 0.05))) as line:
        while (now := time.monotonic()) < end or (len(frames) < at_least and now < latest):
            for body in decoder.feed(line.read(line.in_waiting or 1)):
                frame = decode_frame(body)
                if isinstance(frame, ReadingsFrame):
                    frames.append(frame)
                    answer = encode_acknowledgement(Status.STORED, frame.boot, frame.sequence)
                    line.write(encode_frame(answer))
    return frames


def numbers(frames: list[ReadingsFrame]) -> dict[int, list[int]]:
    """Return the numbers that arrived of each start."""
    names = sorted({(frame.boot, frame.sequence) for frame in frames})
    return {boot: [each for start, each in names if start == boot] for boot, _ in names}


@pytest.mark.uncovered
def test_samples_that_nobody_has_taken_outlive_updates(
    board: StandInBoard, other_main: list[str]
) -> None:
    """One version is taken back, one stays; with a `spill` as well in the large form."""
    shapes: list[dict[str, int]] = [{"spill_bytes": 1 << 16}, {}]
    frames = list[ReadingsFrame]()
    for number, spill in enumerate(shapes[-min(ROUNDS, 2) :]):
        settings = {"name": "barn1", "interval_ms": 100 + number, **spill}
        install(board, settings)
        frames += received(board.port, 1)
        boot = frames[-1].boot
        time.sleep(1.5)  # the window is full, and more is behind it
        other_main.append(HANGING)
        with pytest.raises(FlashingError, match="runs again"):
            install(board, seconds=1)
        other_main.clear()
        assert install(board, {**settings, "interval_ms": 110}).changed
        frames += received(board.port, 3, at_least=20)
        found = numbers(frames)
        wrong = {boot: seen for boot, seen in found.items() if seen != [*range(1, len(seen) + 1)]}
        assert wrong == {}
        assert len(found[boot]) >= 20


@pytest.mark.uncovered
def test_a_command_to_restart_saves_what_waits(board: StandInBoard) -> None:
    install(board, {"name": "barn1", "interval_ms": 100})
    before = received(board.port, 0.5)
    boot = before[0].boot
    time.sleep(1)
    command = encode_frame(encode_command(boot, 1, Command.RESTART, b""))
    with contextlib.closing(open_port(Port(board.port), 0.05)) as line:
        line.write(command)
        time.sleep(1)
    found = numbers([*before, *received(board.port, 2)])
    assert found[boot][-1] > before[-1].sequence
    assert found[boot] == [*range(1, len(found[boot]) + 1)]


def test_a_node_has_the_time_to_save(board: StandInBoard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.flashing.board.REPL_SECONDS", 0.3)
    with contextlib.closing(Board.connect(Port(board.port))) as connected:
        connected.write("/main.py", SAVING.encode() + b"main('')")
    with contextlib.closing(open_port(Port(board.port), 20)) as line:
        board.tell("cut")
        assert line.read_until(b"runs").endswith(b"runs")
    with contextlib.closing(Board.connect(Port(board.port))) as connected:
        assert connected.ask("print(1 + 1)") == 2
