"""The program of a board: reads its settings, opens its line, samples and sends for ever.

`settings.json` stands in the same folder; `tidegate firmware new` explains what is in it.
"""

import sys
import time

import micropython
import node
from node import const
from node.board import Board
from node.starts import Starts
from node.uptime import Uptime

TYPE_CHECKING = False  # MicroPython has no typing module
if TYPE_CHECKING:
    from node.loop import Node, Port

_POLL_MS = const(20)

_CTRL_C = const(3)
_NO_INTERRUPT = const(-1)

WATCHDOG_MS = const(8000)
"""Milliseconds after which a board that hangs is reset; an RP2040 counts no further than 8388. The
launcher looks for this name."""


def main(folder: str = "") -> None:
    """Sample and send until somebody wants the REPL.

    Without a `folder`, which the launcher gives, nobody could feed a watchdog in the REPL.
    """
    # What outlives an update stands beside the folders of the versions.
    top = folder[: folder.rfind("/") + 1] or "/"
    clock = Uptime()
    starts = Starts(top + "starts", clock)
    try:
        run(folder, top, clock, starts)
    except KeyboardInterrupt:
        starts.succeed()
        raise


def run(folder: str, top: str, clock: Uptime, starts: Starts) -> None:
    """Make the node, or after failed starts one that only hears commands, and step it for ever."""
    from node import start

    settings = start.safe_settings(folder) if starts.safe else start.read_settings(folder)
    board = Board(settings.get("led"), clock, WATCHDOG_MS if folder else 0)
    port = start.open_port(settings, clock, top)
    try:
        made = start.make_node(settings, port, clock, board, starts, top)
        del start, settings
        forget_start()
        tie(made, port, board, top)
        step_on(made, board, starts)
    except KeyboardInterrupt:
        starts.succeed()  # before Ctrl-C counts again: a second one is to meet the launcher's hold
        save(board)
        raise
    finally:
        if hasattr(port, "close"):
            port.close()


def forget_start() -> None:
    """Give the memory back that only the start of the node needed."""
    del sys.modules["node.start"]
    del node.start


def tie(made: "Node", port: "Port", board: Board, top: str) -> None:
    """Let the port's waits sample, and the board save what the node has.

    In node/start.py, what is called later would keep all of that module in memory.
    """

    def idle() -> None:
        board.feed()
        made.measure()

    if hasattr(port, "idle"):
        port.idle = idle
    board.save = lambda: made.save(top + "spill", board.feed)


def save(board: Board) -> None:
    """Put what nobody has acknowledged onto the flash; Ctrl-C does not end that."""
    if board.save is None:
        return
    micropython.kbd_intr(_NO_INTERRUPT)
    try:
        board.save()
    except (ValueError, IndexError) as failure:  # a UART's Ctrl-C came in the middle of a change
        print("not saved:", failure)
    micropython.kbd_intr(_CTRL_C)


def step_on(made: "Node", board: Board, starts: Starts) -> None:
    """Do what the node has to do, until safe mode is over."""
    while not starts.over:
        board.feed()
        board.show(made.state)
        starts.step()
        time.sleep(min(made.step(), _POLL_MS) / 1000)
    board.restart()


if __name__ == "__main__":
    main()
