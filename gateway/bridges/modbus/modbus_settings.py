"""The keys of a `[[modbus]]` table."""

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

from gateway.bridges.modbus.device_map import MappedDevice
from gateway.bridges.modbus.register import REGISTERS_MAX, Register
from gateway.bridges.modbus.requests import WORDS_MAX, Request
from gateway.bridges.settings import BridgeSettings, key, tables
from gateway.settings.checks import one_of, text, whole_number
from gateway.settings.declaration import Mistake
from gateway.settings.quantities import duration

RTU_OVER_TCP = "rtu+tcp://"
DEVICES_MAX = 247
"""Devices of one bus that have maps."""

SCHEMES = ("tcp", "rtu+tcp")

TURNAROUND = 0.02
"""Seconds that a device usually needs to begin its answer."""


def modbus_port(value: object) -> str:
    """Accept a path, `tcp://host:port` or `rtu+tcp://host:port`."""
    name = text(value)
    if "://" in name:
        try:
            parts = urlsplit(name)
            complete = parts.scheme in SCHEMES and parts.hostname and parts.port != 0
        except ValueError:
            complete = None
        if not complete:
            raise ValueError("a path, tcp://host:port or rtu+tcp://host:port")
    return name


@dataclass(frozen=True, kw_only=True, slots=True)
class ModbusSettings(BridgeSettings):
    """A bus, and the registers of its devices."""

    port: str = key(
        modbus_port,
        "path of the serial port (RTU), `usb:…`, `tcp://host:port`, or `rtu+tcp://host:port` "
        "for an adapter that forwards RTU frames",
    )
    baud: int = key(whole_number(300, 4_000_000), "bits a second", 19_200)
    parity: str = key(one_of("none", "even", "odd"), "parity", "even")
    stop_bits: int = key(whole_number(1, 2), "stop bits", 1)
    timeout: float = key(
        duration(0.01, 60),
        "time for a device to begin its answer, beside the transmission time",
        0.5,
    )
    pause: float = key(
        duration(0, 10),
        "silence between two requests; at least 3.5 characters on a serial port",
        0.0,
    )
    max_registers: int = key(
        whole_number(1, 125),
        "registers of one request; fewer for a device that refuses so many",
        WORDS_MAX,
    )
    mapped: tuple[MappedDevice, ...] = tables(MappedDevice, name="device", most=DEVICES_MAX)
    register: tuple[Register, ...] = tables(Register, name="register", most=REGISTERS_MAX)

    def mistakes(self, given: frozenset[str]) -> Iterator[Mistake]:
        """Yield the mistakes of all registers together."""
        nothing = self.register == () and "mapped" not in given
        many = 0 if nothing else len(self.registers)
        if nothing or many > REGISTERS_MAX:
            error = (
                f"1 to {REGISTERS_MAX} tables [[modbus.register]], or [[modbus.device]] with maps"
            )
            yield "register", many, error

    @property
    def registers(self) -> tuple[Register, ...]:
        """All registers, those of maps included."""
        mapped = (each for device in self.mapped or () for each in device.registers)
        return (*(self.register or ()), *mapped)

    @property
    def is_rtu(self) -> bool:
        """Whether frames are RTU frames, on a serial line or through an adapter."""
        return "://" not in self.port or self.port.startswith(RTU_OVER_TCP)

    def line_time(self, sent: int, received: int) -> float:
        """Return the transmission time of so many bytes in seconds; 0 on a network."""
        if not self.is_rtu:
            return 0.0
        bits = 1 + 8 + (self.parity != "none") + self.stop_bits
        return (sent + received) * bits / self.baud

    def poll_time(self, request: Request) -> float:
        """Return the seconds from a question until the next one can be sent, as a rule."""
        return self.line_time(*request.sizes) + self.quiet + TURNAROUND

    @property
    def quiet(self) -> float:
        """Seconds between an answer and the next request (Modbus over serial line, 2.5.1.1)."""
        if not self.is_rtu:
            return self.pause
        return max(self.pause, 3.5 * 11 / self.baud if self.baud <= 19_200 else 0.00175)
