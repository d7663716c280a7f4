"""The keys of a `[[modbus]]` table."""

from dataclasses import dataclass
from urllib.parse import urlsplit

from gateway.bridges.modbus.register import REGISTERS_MAX, Register
from gateway.bridges.modbus.requests import WORDS_MAX
from gateway.bridges.settings import BridgeSettings, key, tables
from gateway.config.checks import number, one_of, text, whole_number


def modbus_port(value: object) -> str:
    """Accept a path, or `tcp://host:port`."""
    name = text(value)
    if "://" in name:
        try:
            parts = urlsplit(name)
            complete = parts.scheme == "tcp" and parts.hostname and parts.port != 0
        except ValueError:
            complete = None
        if not complete:
            raise ValueError("a path, or tcp://host:port")
    return name


@dataclass(frozen=True, kw_only=True, slots=True)
class ModbusSettings(BridgeSettings):
    """A bus, and what is read from the devices on it."""

    port: str = key(modbus_port, "path of the serial port (RTU), `usb:…`, or `tcp://host:port`")
    baud: int = key(whole_number(300, 4_000_000), "bits a second of a serial port", 19_200)
    parity: str = key(one_of("none", "even", "odd"), "`none`, `even` or `odd`", "even")
    stop_bits: int = key(whole_number(1, 2), "1 or 2", 1)
    timeout: float = key(number(0.01, 60), "seconds that a device has to answer", 0.5)
    pause: float = key(
        number(0, 10),
        "seconds of quiet between two requests; at least 3.5 characters on a serial port",
        0.0,
    )
    max_registers: int = key(
        whole_number(1, 125),
        "registers of one request; a device that refuses so many is asked for fewer by itself",
        WORDS_MAX,
    )
    register: tuple[Register, ...] = tables(
        Register, name="register", most=REGISTERS_MAX, needed=True
    )

    @property
    def quiet(self) -> float:
        """Seconds between an answer and the next request (Modbus over serial line, 2.5.1.1)."""
        if "://" in self.port:
            return self.pause
        return max(self.pause, 3.5 * 11 / self.baud if self.baud <= 19_200 else 0.00175)
