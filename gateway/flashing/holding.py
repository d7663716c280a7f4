"""A board that waits for its files: nothing of ours runs on it but the launcher."""

import contextlib
import termios
from collections.abc import Iterator
from functools import partial

from gateway.flashing.board import Board
from gateway.flashing.errors import FlashingError
from gateway.flashing.install import STATE
from gateway.flashing.port import Port, open_port, retried

HOLD = "/hold"
HELD_SECONDS = 2.0
"""Seconds in which a board that was reset says that it waits; a USB board may say it unheard."""

ATTEMPTS = 4
"""How often a board is asked to wait: Ctrl-C may meet the launcher before it does."""


def hold(port: Port) -> Board:
    """Connect to a board and let it run nothing but its REPL until it is reset.

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
    """Wait until a board that was reset is back and has said that it waits."""
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
