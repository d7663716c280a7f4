"""VE.Direct, the text protocol of Victron's chargers, inverters and battery monitors.

Victron Energy, "VE.Direct Protocol", version 3.33: a block is lines of a name, a tab and a value.
The last one is `Checksum`, whose byte makes the sum of all bytes of the block zero.
"""

from collections.abc import Callable, Iterator

from gateway.bridges.serial.sample import Measured, Telegram

END = b"\r\nChecksum\t"

BLOCK_MAX = 2_048
"""Bytes of a block; the longest has some 22 lines."""

HEX_START, HEX_END = b":", b"\n"
"""A message of the other protocol, between lines; no sum includes it."""


def _scaled(quantity: str, unit: str | None, digits: int = 0, instance: str = "") -> "Read":
    def read(text: str) -> Measured:
        number = int(text)
        value = number if digits == 0 else round(number * 10.0**-digits, digits)
        return Measured(quantity, value, unit, instance)

    return read


def _number(quantity: str) -> "Read":
    return lambda text: Measured(quantity, int(text, 0))


def _switch(quantity: str, instance: str = "") -> "Read":
    states = {"ON": True, "OFF": False}
    return lambda text: Measured(quantity, states[text.upper()], None, instance)


def _time_to_go(text: str) -> Measured | None:
    return None if int(text) < 0 else Measured("duration", int(text), "min", "time_to_go")


def _temperature(text: str) -> Measured | None:
    return None if text == "---" else Measured("temperature", int(text), "°C")


Read = Callable[[str], Measured | None]

FIELDS: dict[str, Read] = {
    "V": _scaled("voltage", "V", 3),
    "V2": _scaled("voltage", "V", 3, "2"),
    "V3": _scaled("voltage", "V", 3, "3"),
    "VS": _scaled("voltage", "V", 3, "auxiliary"),
    "VM": _scaled("voltage", "V", 3, "midpoint"),
    "VPV": _scaled("voltage", "V", 3, "panel"),
    "PPV": _scaled("power", "W", 0, "panel"),
    "I": _scaled("current", "A", 3),
    "I2": _scaled("current", "A", 3, "2"),
    "I3": _scaled("current", "A", 3, "3"),
    "IL": _scaled("current", "A", 3, "load"),
    "LOAD": _switch("power_on", "load"),
    "RELAY": _switch("power_on", "relay"),
    "ALARM": _switch("problem"),
    "T": _temperature,
    "P": _scaled("power", "W"),
    "CE": _scaled("charge_consumed", "Ah", 3),
    "SOC": _scaled("battery", "%", 1),
    "TTG": _time_to_go,
    "AR": _number("alarm_reason"),
    "OR": _number("off_reason"),
    "H17": _scaled("energy", "kWh", 2, "discharged"),
    "H18": _scaled("energy", "kWh", 2, "charged"),
    "H19": _scaled("energy", "kWh", 2),
    "H20": _scaled("energy", "kWh", 2, "today"),
    "H21": _scaled("power", "W", 0, "most_today"),
    "ERR": _number("error_code"),
    "CS": _number("charge_state"),
    "MPPT": _number("tracker_state"),
    "MODE": _number("mode"),
    "AC_OUT_V": _scaled("voltage", "V", 2, "ac_out"),
    "AC_OUT_I": _scaled("current", "A", 1, "ac_out"),
    "AC_OUT_S": _scaled("apparent_power", "VA", 0, "ac_out"),
    "DC_IN_V": _scaled("voltage", "V", 2, "dc_in"),
    "DC_IN_I": _scaled("current", "A", 1, "dc_in"),
    "DC_IN_P": _scaled("power", "W", 0, "dc_in"),
    "WARN": _number("warning_reason"),
}
"""The measured fields; others describe the device or its history."""


class VeDirectDecoder:
    """Finds blocks whose sum is right."""

    def __init__(self) -> None:
        self.failed = 0
        self.skipped = 0
        self._pending = bytearray()
        self._whole = False
        """Whether the pending bytes begin with a block's first byte."""

    def feed(self, data: bytes) -> Iterator[Telegram]:
        """Yield the blocks that `data` completes."""
        self._pending += data
        while (end := self._pending.find(END) + len(END) + 1) > len(END):
            if end > len(self._pending):
                return
            block = _without_hex(bytes(self._pending[:end]))
            del self._pending[:end]
            whole, self._whole = self._whole, True
            if sum(block) & 0xFF == 0:
                yield _read(block[: -len(END) - 1])
            elif whole:
                self.failed += 1
            else:  # its start was not received
                self.skipped += len(block)
        if len(self._pending) > BLOCK_MAX:
            self.skipped += len(self._pending)
            self._pending.clear()
            self._whole = False


def _without_hex(block: bytes) -> bytes:
    """Return a block without messages of the other protocol, which begin a line."""
    place = 0
    while (start := block.find(HEX_START, place)) >= 0:
        end = block.find(HEX_END, start)
        begins = start == 0 or block[start - 1 : start] == b"\n"
        if end < 0 or not begins or not block[start + 1 : end].rstrip(b"\r").isalnum():
            place = start + 1
            continue
        block, place = block[:start] + block[end + 1 :], start
    return block


def _read(block: bytes) -> Telegram:
    values = []
    for line in block.split(b"\r\n"):
        name, _, text = line.decode("ascii", "replace").partition("\t")
        read = FIELDS.get(name.upper())
        try:
            measured = None if read is None else read(text.strip())
        except (ValueError, KeyError):  # a value that this device writes in another form
            continue
        if measured is not None:
            values.append(measured)
    return Telegram(tuple(values))
