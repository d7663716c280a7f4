"""What is wired to the board, and its modules `machine` and `network`."""

import struct

from ending import reset
from timers import WDT, Timer


class Pin:
    IN, OUT, OPEN_DRAIN, PULL_UP, PULL_DOWN = range(5)

    def __init__(self, number: int, *_settings: int, **_more: int) -> None:
        self.number = number
        self._value = 0

    def value(self, value: "int | None" = None) -> int:
        if value is not None:
            self._value = value
        return self._value

    def on(self) -> None:
        self._value = 1

    def off(self) -> None:
        self._value = 0

    def toggle(self) -> None:
        self._value = 1 - self._value

    def __call__(self, value: "int | None" = None) -> int:
        return self.value(value)


class ADC:
    CORE_TEMP = 4

    def __init__(self, _channel: int) -> None:
        pass

    def read_u16(self) -> int:
        return 14290  # 27 °C of an RP2040

    def read_uv(self) -> int:
        return 719_500


class I2C:
    """A bus with a BME280 at 0x76: the example of its datasheet, 25.08 °C and 1006.53 hPa."""

    ADDRESS = 0x76
    CALIBRATION = struct.pack("<Hhh", 27504, 26435, -1000) + struct.pack(
        "<Hhhhhhhhh", 36477, -10685, 3024, 2855, 140, -7, 15500, -14600, 6000
    )
    REGISTERS = {  # noqa: RUF012 - nothing changes it
        0xD0: b"\x60",
        0x88: CALIBRATION + b"\x00\x4b",
        0xE1: struct.pack("<hB", 362, 0) + b"\x13\x29\x03\x1e",
        0xF7: b"\x65\x5a\xc0\x7e\xed\x00\x75\x30",
    }

    def __init__(self, *_settings: int, **_more: object) -> None:
        pass

    def scan(self) -> "list[int]":
        return [self.ADDRESS]

    def readfrom_mem(self, address: int, register: int, size: int) -> bytes:
        if address != self.ADDRESS:
            raise OSError(5)
        return self.REGISTERS[register][:size]

    def writeto_mem(self, address: int, _register: int, _data: bytes) -> None:
        if address != self.ADDRESS:
            raise OSError(5)

    def writeto(self, _address: int, _data: bytes) -> None:
        raise OSError(5)


class RTC:
    """A clock that begins with the board, long ago."""

    _now = (2021, 1, 1, 4, 0, 0, 0, 0)

    def datetime(self, now: "tuple[int, ...] | None" = None) -> "tuple[int, ...]":
        if now is not None:
            RTC._now = now
        return RTC._now


class Machine:
    Timer = Timer
    WDT = WDT
    RTC = RTC
    Pin = Pin
    ADC = ADC
    I2C = I2C
    SoftI2C = I2C
    PWRON_RESET, HARD_RESET, WDT_RESET, SOFT_RESET = 1, 2, 3, 4

    reset = staticmethod(reset)

    @staticmethod
    def unique_id() -> bytes:
        return b"\xe6\x61\x64\x08\x43\x1f\x2a\x24"

    @staticmethod
    def reset_cause() -> int:
        return 1

    @staticmethod
    def freq() -> int:
        return 125_000_000


class WLAN:
    """A station that has always been connected: the network is this computer's."""

    def __init__(self, _interface: int) -> None:
        pass

    def active(self, _on: bool) -> None:
        pass

    def isconnected(self) -> bool:
        return True


class Network:
    STA_IF = 0
    WLAN = WLAN
