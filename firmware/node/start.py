"""What a node needs once: its settings are read, its line is opened, its parts are put together.

The program forgets this module afterwards, for the sake of its memory.
"""

import json
import os
from binascii import a2b_base64, hexlify

import machine

from . import const, files
from .buffer import waiting_bytes
from .loop import Node
from .programs import Programs
from .ring import SIZE_MIN
from .sensors import Sensors

TYPE_CHECKING = False  # MicroPython has no typing module
if TYPE_CHECKING:
    from typing import Any

    from .board import Board
    from .loop import Clock, Port, Sensor
    from .spill import Spill
    from .starts import Starts

_BAUD = const(115200)
_INTERVAL_MS = const(10000)
_RECEIVE_BUFFER = const(512)  # bytes; an acknowledgement has 18, and at most 8 are on their way

SAFE_MODE_SETTINGS = ("name", "link", "uart", "baud", "wifi", "broker", "led")


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
    found = {name: settings[name] for name in SAFE_MODE_SETTINGS if name in settings}
    if found.get("link") == "ble":  # which says nothing without sensors
        del found["link"]
    found.update({"sensors": [], "waiting_bytes": SIZE_MIN})
    return found


def node_name(settings: "dict[str, Any]") -> str:
    """Return the set name, or one that no other board has."""
    return str(settings.get("name") or "node-" + hexlify(machine.unique_id()).decode())


def open_port(settings: "dict[str, Any]", clock: "Clock", folder: str) -> "Port":
    """Return the line to the gateway; one that needs none is within reach by USB all the same."""
    if settings.get("link") == "uart":
        port: Port = machine.UART(
            settings.get("uart", 1), settings.get("baud", _BAUD), rxbuf=_RECEIVE_BUFFER
        )
        return port
    from .usb_port import UsbPort

    if settings.get("link") != "mqtt":
        return UsbPort()
    from .mqtt_port import MqttPort

    context = tls_context(settings["broker"].get("ca"), folder + "clock")
    return MqttPort(node_name(settings), settings, clock, UsbPort(), context)


def tls_context(authority: "str | None", clock: str) -> "Any":
    """Return a context that trusts one certificate, base64 of its DER form; None without one.

    Certificates begin at a date: a board whose clock begins at its start, long ago, takes that of
    the file `clock`, which is as old as what was last copied to the board.
    """
    if not authority:
        return None
    import tls

    content = files.read(clock, 40)
    if content is not None and hasattr(machine, "RTC"):
        copied, rtc = tuple([int(word) for word in content.split()]), machine.RTC()
        if rtc.datetime() < copied:
            rtc.datetime(copied)

    context: Any = tls.SSLContext(tls.PROTOCOL_TLS_CLIENT)
    context.verify_mode = tls.CERT_REQUIRED
    context.load_verify_locations(a2b_base64(authority))
    return context


def make_node(
    settings: "dict[str, Any]",
    port: "Port",
    clock: "Clock",
    board: "Board",
    starts: "Starts",
    folder: str,
) -> Node:
    """Return the node that the settings describe; what it keeps is in files of `folder`."""
    name = node_name(settings)
    sensor: Sensor = Sensors(settings, board.feed)
    if settings.get("link") == "ble":
        from .advertiser import Advertised

        sensor = Advertised(sensor, name, settings.get("key"), folder + "counter")
    boot = int.from_bytes(os.urandom(4), "little")
    spill = None if starts.safe else _make_spill(settings, folder, boot)
    return Node(
        name,
        boot,
        port,
        sensor,
        clock,
        settings.get("interval_ms", _INTERVAL_MS),
        waiting_bytes=settings.get("waiting_bytes") or waiting_bytes(spill),
        board=board,
        programs=None if starts.safe else Programs(folder + "programs"),
        starts=starts,
        spill=spill,
    )


def _make_spill(settings: "dict[str, Any]", folder: str, boot: int) -> "Spill | None":
    """Return the room on the flash that the settings give, or what an earlier start saved."""
    size = settings.get("spill_bytes") or 0
    try:
        saved = os.listdir(folder + "spill")
    except OSError:  # nothing ever was
        saved = []
    if not size and not saved:
        return None
    from .spill import Spill  # a node without it does without its memory

    return Spill(folder + "spill", size, boot)
