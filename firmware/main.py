"""The program of a board: reads its settings, opens its line, samples and sends for ever.

`settings.json` stands in the same folder; `tidegate firmware new` explains what is in it.
"""

import json
import os
import time
from binascii import hexlify

import machine
from node.board import Board
from node.buffer import WAITING_BYTES
from node.loop import Node
from node.programs import Programs
from node.uptime import Uptime

TYPE_CHECKING = False  # MicroPython has no typing module
if TYPE_CHECKING:
    from typing import Any

    from node.loop import Clock, Port, Sensor, Value

BAUD = 115200
INTERVAL_MS = 10000
RECEIVE_BUFFER = 512  # bytes; an acknowledgement has 18, and at most 8 are on their way
POLL_MS = 20


def read_settings(folder: str) -> "dict[str, Any]":
    """Return the settings in a folder, none where there is no file."""
    try:
        with open(folder + "/settings.json") as file:
            settings: dict[str, Any] = json.load(file)
            return settings
    except OSError:
        return {}


def node_name(settings: "dict[str, Any]") -> str:
    """Return the set name, or one that no other board has."""
    return str(settings.get("name") or "node-" + hexlify(machine.unique_id()).decode())


class Sensors:
    """The sensors of the settings, read as one; what does not answer is left out.

    Each is made by its driver before it is read first. One that cannot be made is tried again at
    the next sample, so that a wrong pin or a missing driver keeps neither the others nor commands
    and updates from working.
    """

    def __init__(self, settings: "dict[str, Any]") -> None:
        self._settings = settings.get("sensors") or [{"driver": "simulated"}]
        self._sensors: list[Sensor | None] = [None for _ in self._settings]

    def read(self) -> "list[tuple[str, Value, str | None]]":
        """Return the readings of all; OSError when none answers."""
        readings: list[tuple[str, Value, str | None]] = []
        failure = None
        for index, settings in enumerate(self._settings):
            try:
                sensor = self._sensors[index]
                if sensor is None:
                    sensor = self._sensors[index] = make_sensor(settings)
                readings.extend(sensor.read())
            except (OSError, ImportError, KeyError, ValueError) as error:
                failure = error
        if failure is not None and not readings:
            raise OSError(str(failure))
        return readings


def make_sensor(settings: "dict[str, Any]") -> "Sensor":
    """Return a sensor from its driver; only drivers in use are loaded."""
    driver = __import__("node.drivers." + settings["driver"], None, None, ["make"])
    sensor: Sensor = driver.make(settings)
    return sensor


def open_port(settings: "dict[str, Any]") -> "Port":
    """Return the line to the gateway."""
    if settings.get("link", "usb") == "usb":
        from node.usb_port import UsbPort

        return UsbPort()
    port: Port = machine.UART(
        settings.get("uart", 1), settings.get("baud", BAUD), rxbuf=RECEIVE_BUFFER
    )
    return port


def make_node(
    settings: "dict[str, Any]",
    port: "Port",
    clock: "Clock",
    board: Board,
    programs: "Programs | None" = None,
) -> Node:
    """Return the node that the settings describe."""
    return Node(
        node_name(settings),
        int.from_bytes(os.urandom(4), "little"),
        port,
        Sensors(settings),
        clock,
        settings.get("interval_ms", INTERVAL_MS),
        waiting_bytes=settings.get("waiting_bytes", WAITING_BYTES),
        board=board,
        programs=programs,
    )


def main(folder: str = "") -> None:
    """Sample and send until somebody wants the REPL."""
    settings = read_settings(folder)
    port = open_port(settings)
    clock = Uptime()
    board = Board(settings.get("led"), clock)
    # Beside the folders of the versions, so that an update leaves the filters alone.
    programs = Programs(
        folder[: folder.rfind("/") + 1] + "programs" if "/" in folder else "/programs"
    )
    node = make_node(settings, port, clock, board, programs)
    try:
        while True:
            board.blink()
            time.sleep(min(node.step(), POLL_MS) / 1000)
    finally:
        if hasattr(port, "close"):
            port.close()


if __name__ == "__main__":
    main()
