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
from node.ring import SIZE_MIN
from node.starts import Starts
from node.uptime import Uptime

TYPE_CHECKING = False  # MicroPython has no typing module
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from node.loop import Clock, Port, Sensor, Value
    from node.spill import Spill

BAUD = 115200
INTERVAL_MS = 10000
RECEIVE_BUFFER = 512  # bytes; an acknowledgement has 18, and at most 8 are on their way
POLL_MS = 20

WATCHDOG_MS = 8000
"""Milliseconds after which a board that hangs is reset; an RP2040 counts no further than 8388. The
launcher looks for this name."""

KEPT_IN_SAFE_MODE = ("name", "link", "uart", "baud", "wifi", "broker", "led")


def read_settings(folder: str) -> "dict[str, Any]":
    """Return the settings in a folder, none where there is no file."""
    try:
        with open(folder + "/settings.json") as file:
            settings: dict[str, Any] = json.load(file)
            return settings
    except OSError:
        return {}


def safe_settings(folder: str) -> "dict[str, Any]":
    """Return the settings for safe mode: the node's name and its line, and nothing that fails."""
    try:
        settings = read_settings(folder)
    except ValueError:  # the file itself may be what failed
        settings = {}
    kept = {name: settings[name] for name in KEPT_IN_SAFE_MODE if name in settings}
    if kept.get("link") == "ble":  # which says nothing without sensors
        del kept["link"]
    kept.update({"sensors": [], "waiting_bytes": SIZE_MIN})
    return kept


def node_name(settings: "dict[str, Any]") -> str:
    """Return the set name, or one that no other board has."""
    return str(settings.get("name") or "node-" + hexlify(machine.unique_id()).decode())


class Sensors:
    """The sensors of the settings, read as one; what does not answer is left out.

    Each is made by its driver before it is read first. One that cannot be made is tried again at
    the next sample, so that a wrong pin or a missing driver keeps neither the others nor commands
    and updates from working.
    """

    def __init__(self, settings: "dict[str, Any]", feed: "Callable[[], None]") -> None:
        self._settings = settings.get("sensors", [{"driver": "simulated"}])
        self._feed = feed  # tells the watchdog between two sensors that the program is alive
        self._sensors: list[Sensor | None] = [None for _ in self._settings]

    def read(self) -> "list[tuple[str, Value, str | None]]":
        """Return the readings of all; OSError when none answers."""
        readings: list[tuple[str, Value, str | None]] = []
        failure = None
        for index, settings in enumerate(self._settings):
            self._feed()
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


def open_port(settings: "dict[str, Any]", clock: "Clock") -> "Port":
    """Return the line to the gateway; one that needs none is within reach by USB all the same."""
    if settings.get("link") == "uart":
        port: Port = machine.UART(
            settings.get("uart", 1), settings.get("baud", BAUD), rxbuf=RECEIVE_BUFFER
        )
        return port
    from node.usb_port import UsbPort

    if settings.get("link") != "mqtt":
        return UsbPort()
    from node.mqtt_port import Lines, MqttPort

    return Lines([UsbPort(), MqttPort(node_name(settings), settings, clock)])


def make_spill(settings: "dict[str, Any]", folder: str) -> "Spill | None":
    """Return the room on the flash that the settings give."""
    if not settings.get("spill_bytes"):
        return None
    from node.spill import Spill  # a node without it does without its memory

    return Spill(folder, settings["spill_bytes"])


def make_node(
    settings: "dict[str, Any]",
    port: "Port",
    clock: "Clock",
    board: Board,
    programs: "Programs | None" = None,
    starts: "Starts | None" = None,
    counter: str = "/counter",
    spill: str = "/spill",
) -> Node:
    """Return the node that the settings describe."""
    name = node_name(settings)
    sensor: Sensor = Sensors(settings, board.feed)
    if settings.get("link") == "ble":
        from node.advertiser import Advertised

        sensor = Advertised(sensor, name, settings.get("key"), counter)
    return Node(
        name,
        int.from_bytes(os.urandom(4), "little"),
        port,
        sensor,
        clock,
        settings.get("interval_ms", INTERVAL_MS),
        waiting_bytes=settings.get("waiting_bytes", WAITING_BYTES),
        board=board,
        programs=programs,
        starts=starts,
        spill=make_spill(settings, spill),
    )


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
    settings = safe_settings(folder) if starts.safe else read_settings(folder)
    board = Board(settings.get("led"), clock, WATCHDOG_MS if folder else 0)
    port = open_port(settings, clock)
    try:
        programs = None if starts.safe else Programs(top + "programs")
        node = make_node(
            settings, port, clock, board, programs, starts, top + "counter", top + "spill"
        )
        while not starts.over:
            board.feed()
            board.show(node.state)
            starts.step()
            time.sleep(min(node.step(), POLL_MS) / 1000)
        board.restart()
    finally:
        if hasattr(port, "close"):
            port.close()


if __name__ == "__main__":
    main()
