"""What is plugged in, and what runs on it."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from gateway.flashing.board import Board
from gateway.flashing.errors import BusyPortError, FlashingError
from gateway.flashing.first_reading import first_reading
from gateway.flashing.install import read_slots, read_version
from gateway.flashing.port import Port, open_port

LISTEN_SECONDS = 2.0
"""Seconds in which a running node sends again what nobody has acknowledged."""


@dataclass(frozen=True, slots=True)
class PluggedIn:
    """A port and what the adapter or board says of itself."""

    port: str
    title: str


def plugged_in() -> list[PluggedIn]:
    """Return the USB serial ports of this computer, by the path that stays where there is one."""
    from serial.tools.list_ports import comports

    found = (each for each in comports(include_links=True) if each.vid is not None)
    by_device: dict[str, PluggedIn] = {}
    for each in sorted(found, key=lambda port: port.device):
        title = " ".join(filter(None, (each.manufacturer, each.product))) or each.description
        by_device.setdefault(f"{each.hwid}", PluggedIn(each.device, title))
    return list(by_device.values())


def runs_on(port: Port) -> str:
    """Return in words what runs on the board at a port.

    A node that is heard is left alone; a board that is not heard is interrupted and started again.
    """
    try:
        open_port(port, LISTEN_SECONDS).close()  # which says at once what is wrong
        reading = first_reading(port, LISTEN_SECONDS)
        if reading is not None:
            return f"node {reading.node}, sending"
        with _board(port) as board:
            described = board.describe()
            version = read_version(board, read_slots(board).current)
    except BusyPortError:
        return "in use by another program, such as a running gateway"
    except FlashingError:
        return "nothing that answers"
    node = "no node on it yet" if version is None else f"node version {version}"
    return f"{described.version} on {described.machine}, {node}"


@contextlib.contextmanager
def _board(port: Port) -> Iterator[Board]:
    """Look at a board, and start again what was interrupted."""
    with contextlib.closing(Board.connect(port)) as board:
        yield board
        board.reset()
