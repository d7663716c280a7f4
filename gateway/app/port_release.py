"""A bridge releases its port for another program on request: `$CONTROL/tidegate/port`."""

import json
import os
from typing import TYPE_CHECKING

from gateway.bridges.serial.serial_settings import SerialSettings
from gateway.mqtt.reason_codes import ReasonCode

if TYPE_CHECKING:
    from gateway.bridges.settings import BridgeSettings
    from gateway.bridges.supervision.supervisor import Supervisor
    from gateway.mqtt.message import Message

SECONDS_MAX = 60.0
"""Seconds for which a port is released; a program that needs longer has it open and locked by
then."""

PAYLOAD_MAX = 4096


class PortRelease:
    """Answers a request, JSON with `port`, a path, and `seconds`; 0 returns the port.

    An invalid request gets 0x99, and a port without a bridge 0x83.
    """

    def __init__(self, supervisor: "Supervisor") -> None:
        self._supervisor = supervisor

    def receive(self, message: "Message") -> ReasonCode:
        """Release the bridge's port."""
        request = _read(bytes(message.payload))
        if request is None:
            return ReasonCode.PAYLOAD_FORMAT_INVALID
        if self.release(*request):
            return ReasonCode.SUCCESS
        return ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR

    def release(self, path: str, seconds: float) -> bool:
        """Release the device at a path; return whether a bridge has it."""
        return self._supervisor.release_port(lambda settings: _device(settings) == path, seconds)


def _read(payload: bytes) -> tuple[str, float] | None:
    """Return path and seconds, None for an invalid request."""
    try:
        request = json.loads(payload[:PAYLOAD_MAX])
        port, seconds = request["port"], request["seconds"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    if not isinstance(port, str) or "\0" in port or not isinstance(seconds, int | float):
        return None
    if not 0 <= seconds <= SECONDS_MAX:
        return None
    return os.path.realpath(port), seconds


def _device(settings: "BridgeSettings") -> str:
    """Return the path of a serial bridge's present device, "" for all others."""
    return device_of(settings.port) if isinstance(settings, SerialSettings) else ""


def device_of(port: str) -> str:
    """Return the path of the device that a port names, "" without one."""
    from gateway.bridges.serial.port import PortError, find_device

    if "://" in port:
        return ""
    try:
        return os.path.realpath(find_device(port))
    except PortError:  # not plugged in: nobody has it
        return ""
