"""Finds devices on Modbus buses: asks each for a register, and finds the map that fits."""

import contextlib
import termios
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from gateway.bridges.kind import FoundTable, ScanOptions
from gateway.bridges.modbus.device_map import MAPS, map_names, read_map
from gateway.bridges.modbus.modbus_bridge import NOT_REACHED, make_client
from gateway.bridges.modbus.modbus_settings import ModbusSettings
from gateway.bridges.modbus.register import Register
from gateway.bridges.readings.registry import instance_of, usual_value
from gateway.bridges.serial.port import PortError, plugged_in

if TYPE_CHECKING:
    from gateway.bridges.modbus.modbus_bridge import Client

LINES = (
    (9_600, "none"),
    (19_200, "even"),
    (9_600, "even"),
    (19_200, "none"),
    (2_400, "none"),
    (2_400, "even"),
    (4_800, "even"),
    (38_400, "none"),
    (115_200, "none"),
)
"""Speed and parity of a serial line, the most usual first."""

DEVICES = range(1, 33)
"""Identifiers to ask on a serial line."""

NETWORK_DEVICES = (1, 2, 3, 4, 5, 10, 71, 126, 247, 255)
"""Identifiers to ask on a network, where most devices have one of these or accept any."""

SECONDS = 0.25
"""Seconds within which a device must answer."""

SAMPLES = 10
"""Registers of a map that are compared with a device's."""

TELLING = {"voltage": (80.0, 500.0), "frequency": (45.0, 65.0)}
"""Quantities with a value in their usual unit that other registers rarely have by chance."""

STUBS = (0, 1, 100, 1_000, 3_000, 4_096, 30_000, 40_000)
"""Registers to try where no map fits."""


async def scan_buses(options: ScanOptions) -> list[FoundTable]:
    """Return tables for the buses on which devices answer."""
    places = options.places or tuple(each.port for each in plugged_in())
    if not places:
        options.report("no USB serial port is plugged in; name a port, or tcp://host:port")
    found: list[FoundTable] = []
    for place in places:
        found += await _scan_bus(place, options)
    return found


async def _scan_bus(place: str, options: ScanOptions) -> list[FoundTable]:
    for settings in _lines(place, options.seconds or SECONDS):
        line = "" if "://" in place else f" at {settings.baud:,} baud, parity {settings.parity}"
        options.report(f"{place}: asking devices{line}")
        try:
            client = make_client(settings)
            connected = await client.connect()
        except (OSError, PortError, termios.error) as failure:
            options.report(f"{place}: {failure}")
            return []
        if not connected:
            options.report(f"{place}: cannot be opened")
            return []
        try:
            tables = await _scan_devices(Bus(client), place, options)
        finally:
            client.close()
        if tables:
            keys = {} if "://" in place else {"baud": settings.baud, "parity": settings.parity}
            return [FoundTable("modbus", {"port": place, **keys}), *tables]
    options.report(f"{place}: no device answers")
    return []


def _lines(place: str, timeout: float) -> Iterator[ModbusSettings]:
    if "://" in place:
        yield ModbusSettings(port=place, timeout=timeout)
        return
    for baud, parity in LINES:
        yield ModbusSettings(port=place, baud=baud, parity=parity, timeout=timeout)


async def _scan_devices(bus: "Bus", place: str, options: ScanOptions) -> list[FoundTable]:
    numbers = options.devices or (NETWORK_DEVICES if "://" in place else DEVICES)
    there = [number for number in numbers if await bus.is_there(number)]
    options.report(f"{place}: devices {', '.join(map(str, there))}" if there else f"{place}: none")
    comments: tuple[str, ...] = ()
    if "://" in place and len(there) == len(numbers) > 1:
        comments = ("the device answers to every identifier",)
        there = there[:1]
    tables: list[FoundTable] = []
    for number in there:
        tables += await _tables_of(bus, number, comments)
    return tables


async def _tables_of(bus: "Bus", number: int, comments: tuple[str, ...]) -> list[FoundTable]:
    """Return the table of a device with the map that fits it best, or with a register."""
    scores = {name: await _fit(bus, number, name) for name in map_names()}
    most = max(scores.values())
    if most > 0:
        best, *others = (name for name, score in scores.items() if score == most)
        title = read_map(MAPS / f"{best}.toml").title
        also = (f"these fit as well: {', '.join(others)}",) if others else ()
        table = FoundTable(
            "modbus.device", {"map": best, "device": number}, (f"{title}?", *comments, *also)
        )
        return [table]
    comments = (f"device {number} fits no included map: its manual says", *comments)
    for table_name in ("holding", "input"):
        for address in STUBS:
            words = await bus.read(number, table_name, address, 1)
            if words:
                what = f"what registers mean; this one has the value {words[0]}"
                values: dict[str, object] = {
                    "device": number,
                    "table": table_name,
                    "address": address,
                    "quantity": f"register_{address}",
                }
                return [FoundTable("modbus.register", values, (*comments, what))]
    return []


async def _fit(bus: "Bus", number: int, name: str) -> float:
    """Return how well a map fits a device, 0 or less for not at all.

    Refused registers and implausible values count against it. The mains voltage or frequency must
    be among those that fit.
    """
    score, telling = 0.0, False
    for register in _samples(read_map(MAPS / f"{name}.toml").register):
        words = await bus.read(number, register.table, register.address, register.size)
        if not words or len(words) < register.size:
            score -= 2
            continue
        if register.is_invalid(words):
            continue
        likely = _is_likely(register, register.value(words))
        telling = telling or (likely is True and register.quantity in TELLING)
        score += {True: 1.0, False: -2.0, None: 0.0}[likely]
    return score if telling else 0.0


def _samples(registers: tuple[Register, ...]) -> list[Register]:
    """Return the registers of a map to read: the most significant values first."""
    read = [each for each in registers if each.press is None and not each.is_bit]
    read.sort(key=lambda each: each.quantity not in TELLING)
    return read[:SAMPLES]


def _is_likely(register: Register, value: object) -> bool | None:
    """Return whether a value is plausible, None for one that shows nothing, such as 0."""
    quantity = instance_of(register.quantity)
    if quantity is None or isinstance(value, bool) or not isinstance(value, int | float):
        return None
    usual = usual_value(quantity, value, register.unit)
    if usual is None:
        return None
    low, high = TELLING.get(quantity.name, (quantity.low, quantity.high))
    if quantity.name not in TELLING and usual == 0:
        return None
    return low <= usual <= high


class Bus:
    """Asks each device for each register once; no answer and an exception are both None."""

    def __init__(self, client: "Client") -> None:
        self._client = client
        self._known: dict[tuple[int, str, int, int], list[int] | None] = {}

    async def is_there(self, number: int) -> bool:
        """Return whether a device answers, even with an exception."""
        for table in ("holding", "input"):
            answer = await self._ask(number, table, 0, 1)
            if answer is not None:
                return not answer.isError() or answer.exception_code not in NOT_REACHED
        return False

    async def read(self, number: int, table: str, address: int, count: int) -> list[int] | None:
        """Return the words of registers."""
        key = (number, table, address, count)
        if key not in self._known:
            answer = await self._ask(number, table, address, count)
            failed = answer is None or answer.isError()
            self._known[key] = None if failed else list(answer.registers)
        return self._known[key]

    async def _ask(self, number: int, table: str, address: int, count: int) -> Any:
        from pymodbus.exceptions import ModbusException

        client = self._client
        read = client.read_input_registers if table == "input" else client.read_holding_registers
        with contextlib.suppress(ModbusException):
            return await read(address, count=count, device_id=number)
        return None
