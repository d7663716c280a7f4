"""Installs a version on a board, verifies it by its first reading, and reverts it on failure."""

import contextlib
import json
import termios
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, Protocol

from gateway.bridges.serial.frame_body import ReadingsFrame
from gateway.flashing.board import Board, Progress
from gateway.flashing.errors import FlashingError
from gateway.flashing.first_reading import first_reading
from gateway.flashing.install import (
    STATE,
    check_main,
    is_installed,
    missing,
    read_fault,
    read_sensors,
    read_slots,
    read_version,
    send,
    settle,
    switch,
)
from gateway.flashing.package import build_package
from gateway.flashing.port import Port, open_port, retried

HOLD = "/hold"
HELD_SECONDS = 2.0
"""Seconds within which a reset board reports that it waits; a USB board's report may be lost."""

ATTEMPTS = 4
"""Requests to wait: Ctrl-C may come before the launcher handles it."""


def hold(port: Port) -> Board:
    """Connect to a board and let it run only its REPL until it is reset.

    Without a program it has all its memory, and no watchdog that ends the session. A board without
    our launcher stays as it is. Raise FlashingError where no REPL answers.
    """
    board = Board.connect(port)
    for _ in range(ATTEMPTS):
        with _closed_at_failure(board):
            if _is_held(board) or board.read(STATE) is None:
                return board
            board.write(HOLD, b"")
            board.reset()
        _wait(port)
        board = retried(partial(Board.connect, port))
    board.close()
    raise FlashingError(f"{port}: the board does not wait for its files")


def _is_held(board: Board) -> bool:
    return board.ask("print('HELD' in globals())") is True


def _wait(port: Port) -> None:
    """Wait until a reset board is back and has reported that it waits."""
    line = retried(partial(open_port, port, HELD_SECONDS))
    with contextlib.closing(line), contextlib.suppress(OSError, termios.error):
        line.read_until(b"held")


@contextlib.contextmanager
def _closed_at_failure(board: Board) -> Iterator[None]:
    try:
        yield
    except BaseException:
        board.close()
        raise


PROVE_SECONDS = 60.0
"""Seconds within which a new version must send its first reading."""

TRIAL_SECONDS = 70.0
"""Seconds after which the launcher has reset a board whose new version does not answer."""

SETTINGS = "settings.json"

HAS_MODULES = """
try:
    import %s
    print(True)
except ImportError:
    print(False)
"""

CLOCK = "/clock"
"""The time of the last copy: for TLS on a board that loses its clock in a power cut."""


class Reporter(Protocol):
    """Shows progress to a person."""

    def show(self, line: str) -> None:
        """Show a line."""

    def progress(self, what: str, total: int) -> contextlib.AbstractContextManager[Progress]:
        """Show how many of `total` bytes are done; the function is called with further bytes."""


@dataclass(frozen=True, slots=True)
class Flashed:
    """The board's new version, and its first reading."""

    version: str
    reading: ReadingsFrame
    changed: bool


def flash(
    port: Port,
    reporter: Reporter,
    settings: Mapping[str, Any] | None = None,
    *,
    compiled: bool = True,
    replace: bool = False,
    seconds: float = PROVE_SECONDS,
) -> Flashed:
    """Install the node on a board that runs MicroPython, and read its first reading.

    Without `settings` those on the board stay. The previous version runs again if the new one sends
    no reading in so many seconds; then FlashingError reports that.
    """
    with contextlib.closing(hold(port)) as board:
        if not replace:
            check_main(board)
        described = board.describe()
        reporter.show(f"{port}: {described.version} on {described.machine}")
        package = build_package(described.bytecode, compiled=compiled)
        if package.why_sources is not None:
            reporter.show(f"{port}: sends sources, not compiled: {package.why_sources}")
        files = {**package.files, SETTINGS: _settings(board, settings)}
        _prepare_network(board, files[SETTINGS])
        before = read_version(board, read_slots(board).current)
        if is_installed(board, files):
            reporter.show(f"{port}: version {package.version} is there already")
            board.reset()
            return Flashed(package.version, _prove(port, package.version, seconds), changed=False)
        folder = _send(board, files, reporter)
        on_trial = switch(board, folder, package.launcher)
        board.reset()
    reporter.show(f"{port}: version {package.version} is installed; waiting for its first reading")
    if not on_trial:
        return Flashed(package.version, _prove(port, package.version, seconds), changed=True)
    reading = _try_out(port, folder, package.version, before, seconds)
    return Flashed(package.version, reading, changed=True)


def _settings(board: Board, settings: Mapping[str, Any] | None) -> bytes:
    if settings is not None:
        return json.dumps(settings, indent=1, sort_keys=True).encode()
    current = read_slots(board).current
    previous = board.read(f"/{current}/{SETTINGS}") if current else None
    if previous is None:
        raise FlashingError(
            f"{board.port}: no settings are on the board yet: name the file that"
            " `tidegate firmware new` wrote"
        )
    return previous


def _prepare_network(board: Board, content: bytes) -> None:
    """Raise FlashingError if a node with Wi-Fi lacks a module of MicroPython; set its time."""
    settings = json.loads(content)
    if settings.get("link") != "mqtt":
        return
    if not board.ask(HAS_MODULES % "network, umqtt.simple"):
        raise FlashingError(
            f'{board.port}: this MicroPython has no umqtt.simple, which link = "mqtt" needs:'
            f" mpremote connect {board.port} mip install umqtt.simple"
        )
    if "ca" in settings.get("broker", {}):
        if not board.ask(HAS_MODULES % "tls"):
            raise FlashingError(
                f"{board.port}: this MicroPython has no module tls, which ca_file needs:"
                " take version 1.23 or newer"
            )
        now = datetime.now(UTC)
        fields = (now.year, now.month, now.day, now.weekday(), now.hour, now.minute, now.second, 0)
        board.replace(CLOCK, " ".join(map(str, fields)).encode())


def _send(board: Board, files: Mapping[str, bytes], reporter: Reporter) -> str:
    """Copy the missing files; the board waits meanwhile."""
    to_send = missing(board, files)
    size = sum(map(len, to_send.values()))
    there = len(files) - len(to_send)
    if there and to_send:
        reporter.show(f"{board.port}: {there} of {len(files)} files are there already")
    with reporter.progress(str(board.port), size) as progress:
        return send(board, files, progress)


def _prove(port: Port, version: str, seconds: float) -> ReadingsFrame:
    """Return the first reading of the only version; raise FlashingError with its traceback."""
    reading = first_reading(port, seconds)
    if reading is not None and not reading.earlier:
        return reading
    with contextlib.closing(retried(partial(Board.connect, port), TRIAL_SECONDS)) as board:
        reading, fault = _measured(board, reading)
        board.reset()
    if reading is not None:
        return reading
    text = f"{port}: version {version} sent no reading within {seconds:g} s"
    raise FlashingError("\n".join((text, *fault)))


def _measured(board: Board, frame: ReadingsFrame | None) -> tuple[ReadingsFrame | None, list[str]]:
    """Return the frame, with the sensors' present values if it is of an earlier start.

    Return None and the reasons without a frame or if no sensor answers.
    """
    if frame is None:
        return None, read_fault(board)
    if not frame.earlier:
        return frame, []
    try:
        return replace(frame, readings=read_sensors(board), earlier=False), []
    except FlashingError as error:
        return None, [str(error)]


def _try_out(
    port: Port, folder: str, version: str, before: str | None, seconds: float
) -> ReadingsFrame:
    """Return the new version's first reading and make it permanent; else revert it."""
    reading = first_reading(port, seconds)
    # A hanging version does not answer: the launcher resets the board, which then does.
    with contextlib.closing(retried(partial(Board.connect, port), TRIAL_SECONDS)) as board:
        slots = read_slots(board)
        lasted = slots.tried == folder
        reading, fault = _measured(board, reading if lasted else None)
        settle(board, folder if reading else slots.current or folder)
        board.reset()
    if reading is not None:
        return reading
    _prove(port, str(before), max(seconds, TRIAL_SECONDS))
    what = "sent no reading" if lasted else "ended"
    text = f"{port}: version {version} {what} within {seconds:g} s; version {before} runs again"
    raise FlashingError("\n".join((text, *fault)))
