"""The boards that are plugged in, and what runs on them."""

import contextlib
import termios
from collections.abc import Iterator

from gateway.flashing.board import Board
from gateway.flashing.errors import BusyPortError, FlashingError
from gateway.flashing.first_reading import Listener
from gateway.flashing.install import read_slots, read_version
from gateway.flashing.port import Port

LISTEN_SECONDS = 35.0
"""Seconds to listen for a node: it repeats unacknowledged frames every second, and sends a
heartbeat every 30 seconds if it filters or its sensors fail."""

ASK_FOR_PROMPT = b"\0\2\r\0"
"""Ctrl-B and a return: a REPL answers with its prompt, a node does not see a frame."""

PROMPT = ">>>"


def runs_on(port: Port) -> str:
    """Return a description of what runs on the board at a port.

    A node that sends is not disturbed. A board in its REPL, or a silent one, is interrupted and
    restarted.
    """
    try:
        node = _sending_node(port)
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


def _sending_node(port: Port) -> str | None:
    """Return the name of the node that sends, None for a REPL or silence."""
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
    """Connect to a board, and restart its program afterwards."""
    with contextlib.closing(Board.connect(port)) as board:
        yield board
        board.reset()
