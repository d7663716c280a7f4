"""Installs a version beside the running one, and switches to it in one step.

`firmware/launcher.py` explains the folders `a` and `b` and the file `slot`. After an interruption
at any point the board starts its old version; the next try sends the missing files.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from gateway.bridges.readings.reading import Value
from gateway.bridges.serial.frame_body import FrameReading
from gateway.flashing.board import Board, Progress
from gateway.flashing.errors import FlashingError
from gateway.flashing.package import VERSION_FILE

FOLDERS = ("a", "b")
STATE = "/slot"
FAULT = "/fault"
STARTS = "/starts"
"""Failed starts in a row: a new version must not begin in safe mode."""

MAIN = "/main.py"
READ_SENSORS = """
import sys, time
folder = "/%s"
sys.path.insert(0, folder)
from node.sensors import Sensors
from node.start import read_settings
def read(sensors, tries):
    try:
        return sensors.read()
    except OSError as failure:
        if tries == 1:
            return str(failure)
    time.sleep(2)
    return read(sensors, tries - 1)
print(repr(read(Sensors(read_settings(folder), lambda: None), 2)))
"""
"""Tries twice, since the program may just have read a sensor that answers every two seconds."""

OTHER_MAIN = "/main.before.py"
"""Where another program is moved."""


@dataclass(frozen=True, slots=True)
class Slots:
    """The folder that the board falls back to, and the one it tries next or has tried.

    None for none.
    """

    current: str | None
    trial: str | None
    tried: str | None

    @property
    def idle(self) -> str:
        """The folder that may be written."""
        return "b" if self.current == "a" else "a"


def read_slots(board: Board) -> Slots:
    """Return the folders that the launcher would start."""
    state = board.read(STATE) or board.read(STATE + ".new") or b""
    match state.decode(errors="replace").split():
        case ["a" | "b" as current]:
            return Slots(current, None, None)
        case ["a" | "b" as current, "try", "a" | "b" as other]:
            return Slots(current, other, None)
        case ["a" | "b" as current, "tried", "a" | "b" as other]:
            return Slots(current, None, other)
    return Slots(None, None, None)


def read_version(board: Board, folder: str | None) -> str | None:
    """Return the version in a folder, None where there is none."""
    content = board.read(f"/{folder}/{VERSION_FILE}") if folder else None
    return None if content is None else content.decode(errors="replace")


def check_main(board: Board) -> None:
    """Raise FlashingError if another program would be overwritten."""
    if read_slots(board).current is None and board.read(MAIN) is not None:
        raise FlashingError(
            f"{board.port}: another program's main.py is on this board;"
            f" --replace saves it as {OTHER_MAIN} and takes its place"
        )


def is_installed(board: Board, files: Mapping[str, bytes]) -> bool:
    """Return whether the board starts exactly these files, and tries no others."""
    slots = read_slots(board)
    if slots.current is None or slots.trial is not None:
        return False
    return board.hashes("/" + slots.current) == _hashes(slots.current, files)


def missing(board: Board, files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files still missing in the idle folder, by their paths on the board."""
    folder = read_slots(board).idle
    there = board.hashes("/" + folder)
    wanted = {f"/{folder}/{name}": content for name, content in files.items()}
    return {path: data for path, data in wanted.items() if there.get(path) != _sha256(data)}


def send(board: Board, files: Mapping[str, bytes], progress: Progress) -> str:
    """Make the idle folder hold exactly these files, checked by hash; return its name."""
    slots = read_slots(board)
    if slots.trial is not None:  # a half-written version must not be started
        board.replace(STATE, (slots.current or "a").encode())
    folder = slots.idle
    wanted = _hashes(folder, files)
    for path in board.hashes("/" + folder).keys() - wanted.keys():
        board.remove(path)
    for path, content in missing(board, files).items():
        board.extend_hold()
        board.write(path, content, progress)
    wrong = sorted(wanted.items() ^ board.hashes("/" + folder).items())
    if wrong:
        raise FlashingError(f"{board.port}: {wrong[0][0]} differs on the board: try again")
    return folder


def switch(board: Board, folder: str, launcher: bytes) -> bool:
    """Start `folder` next; return whether on trial, because there is another version."""
    current = read_slots(board).current
    main = board.read(MAIN)
    if current is None:
        if main is not None:
            board.replace(OTHER_MAIN, main)
        board.replace(STATE, folder.encode())
    if main != launcher:
        board.replace(MAIN, launcher)
    for path in (FAULT, STARTS):  # of the previous version
        if board.read(path) is not None:
            board.remove(path)
    if current is not None:
        board.replace(STATE, f"{current} try {folder}".encode())
    return current is not None


def settle(board: Board, folder: str) -> None:
    """Make every start from now on use `folder`."""
    board.replace(STATE, folder.encode())


def read_fault(board: Board) -> list[str]:
    """Return the last version's traceback, or why its sensors cannot be read."""
    content = board.read(FAULT)
    if content is not None:
        return content.decode(errors="replace").splitlines()
    try:
        read_sensors(board)
    except FlashingError as error:
        return [str(error)]
    return []


def read_sensors(board: Board) -> tuple[FrameReading, ...]:
    """Return the present values of the last version's sensors; FlashingError if none answers."""
    slots = read_slots(board)
    answer = board.ask(READ_SENSORS % (slots.tried or slots.current))
    if isinstance(answer, str):
        raise FlashingError(f"{board.port}: a sensor does not answer: {answer}")
    return tuple(FrameReading(name, _number(value), unit) for name, value, unit in answer)


def _number(value: Value | tuple[int, int]) -> Value:
    """Return the value of a reading; a decimal is a mantissa and a power of ten."""
    return float(f"{value[0]}e{value[1]}") if isinstance(value, tuple) else value


def _hashes(folder: str, files: Mapping[str, bytes]) -> dict[str, str]:
    return {f"/{folder}/{name}": _sha256(content) for name, content in files.items()}


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
