"""What is plugged in, and what runs on it."""

import contextlib
import termios
from collections.abc import Iterator

from gateway.flashing.board import Board
from gateway.flashing.errors import BusyPortError, FlashingError
from gateway.flashing.first_reading import Listener
from gateway.flashing.install import read_slots, read_version
from gateway.flashing.port import Port

LISTEN_SECONDS = 35.0
"""Seconds in which a node is heard: every second it sends again what nobody has acknowledged, and
every 30 seconds a heartbeat if it filters or its sensors fail."""

ASK_FOR_PROMPT = b"\0\2\r\0"
"""Ctrl-B and a return, which a REPL answers with its prompt; to a node it is no frame."""

PROMPT = ">>>"


def runs_on(port: Port) -> str:
    """Return in words what runs on the board at a port.

    A node that is heard is left alone. A board in its REPL, or a silent one, is interrupted and
    started again.
    """
    try:
        node = _heard(port)
        if node is not None:
            return f"node {node}, sending"
        with _board(port) as board:
            described = board.describe()
            version = read_version(board, read_slots(board).current)
    except BusyPortError:
        return "in use by another program, such as a running gateway"
    except FlashingError:
        return "nothing that answers"
    there = "no node on it yet" if version is None else f"node version {version}"
    return f"{described.version} on {described.machine}, {there}"


def _heard(port: Port) -> str | None:
    """Return the name of the node that is heard, None for a REPL or if none is."""
    try:
        with contextlib.closing(Listener(port)) as listener:
            listener.send(ASK_FOR_PROMPT)
            for frame in listener.frames(LISTEN_SECONDS):
                if frame is not None:
                    return frame.node
                if any(line.startswith(PROMPT) for line in listener.take_text()):
                    break
    except (OSError, termios.error) as error:
        raise FlashingError(f"{port}: {error}") from error
    return None


@contextlib.contextmanager
def _board(port: Port) -> Iterator[Board]:
    """Look at a board, and start again what was interrupted."""
    with contextlib.closing(Board.connect(port)) as board:
        yield board
        board.reset()
