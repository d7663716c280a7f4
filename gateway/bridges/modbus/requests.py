"""Which registers are read together, and when the next request of each device is due."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from gateway.bridges.modbus.register import Register

WORDS_MAX = 120
"""Registers of one request; Modbus allows 125."""

BITS_MAX = 1_000
"""Coils of one request; Modbus allows 2,000."""

ABSENT_FIRST = 2.0
"""Seconds that a device which did not answer is left alone; doubled each time."""

ABSENT_MAX = 60.0
"""Seconds at most: how long a device is missed that was switched on again."""


@dataclass(slots=True)
class Request:
    """Neighbours of one device and table that are asked for at one interval."""

    registers: list[Register]
    due: float = 0.0

    @property
    def first(self) -> Register:
        """The one that begins the request."""
        return self.registers[0]

    @property
    def count(self) -> int:
        """Registers or bits from the first to the end of the last."""
        return max(each.address + each.size for each in self.registers) - self.first.address


@dataclass(slots=True)
class Device:
    """A device on the bus with its requests; one that does not answer is left alone a while."""

    number: int
    requests: list[Request] = field(default_factory=list)
    absent_until: float = 0.0
    wait: float = 0.0
    trouble: str = ""

    def next(self) -> Request:
        """Return the request that is due first."""
        return min(self.requests, key=lambda request: request.due)

    def due(self) -> float:
        """Return when something is to be asked for."""
        return max(self.next().due, self.absent_until)

    def answered(self) -> None:
        """Take that it is there."""
        self.wait, self.absent_until = 0.0, 0.0

    def silent(self, now: float) -> None:
        """Take that it did not answer: the others are not to wait for it again and again."""
        self.wait = min(self.wait * 2 or ABSENT_FIRST, ABSENT_MAX)
        self.absent_until = now + self.wait


def plan(registers: Iterable[Register]) -> list[Device]:
    """Return the devices of a register map, with neighbours joined into one request."""
    devices: dict[int, Device] = {}
    ordered = sorted(
        registers, key=lambda each: (each.device, each.table, each.interval, each.address)
    )
    for register in ordered:
        device = devices.setdefault(register.device, Device(register.device))
        if device.requests and _joins(device.requests[-1], register):
            device.requests[-1].registers.append(register)
        else:
            device.requests.append(Request([register]))
    return list(devices.values())


def _order(register: Register) -> tuple[int, str, float, int]:
    return register.device, register.table, register.interval, register.address


def _joins(request: Request, register: Register) -> bool:
    """Return whether a register lies right behind, or in, what a request asks for."""
    first = request.first
    if (first.table, first.interval) != (register.table, register.interval):
        return False
    end = first.address + request.count
    most = BITS_MAX if register.is_bit else WORDS_MAX
    return register.address <= end and register.address + register.size - first.address <= most
