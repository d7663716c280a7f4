"""The keys of a `[[ble]]` table."""

import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from gateway.bridges.settings import BridgeSettings, bridge_name, key
from gateway.config.checks import boolean, number, one_of, text, whole_number

ADDRESS = re.compile(r"(?:[0-9A-F]{2}:){5}[0-9A-F]{2}")
KEY = re.compile(r"[0-9a-fA-F]{32}|[0-9a-fA-F]{24}")

LAYOUTS = {
    "int8": "b",
    "uint8": "B",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "float32": "f",
    "float64": "d",
    "bool": "?",
    "text": "",
}

Checks = dict[str, Callable[[object], Any]]

DEVICES_MAX = 200
CHARACTERISTICS_MAX = 32


@dataclass(frozen=True, slots=True)
class Characteristic:
    """A GATT characteristic, read at each interval, or notified."""

    uuid: str
    quantity: str
    type: str = "int16"
    byte_order: str = "little"
    scale: float = 1.0
    unit: str | None = None
    notify: bool = False
    interval: float = 60.0

    def value(self, data: bytes) -> bool | int | float | str:
        """Return the value of the first bytes; raise ValueError if there are too few."""
        if self.type == "text":
            return data.decode("utf-8", "replace").rstrip("\0")
        try:
            order = "<" if self.byte_order == "little" else ">"
            value = struct.unpack_from(f"{order}{LAYOUTS[self.type]}", data)[0]
        except struct.error:
            raise ValueError(f"{len(data)} bytes are no {self.type}") from None
        if isinstance(value, bool) or self.scale == 1.0:
            return bool(value) if isinstance(value, bool) else value
        return float(round(value * self.scale, 9))


@dataclass(frozen=True, slots=True)
class BleDevice:
    """A device that is listed: its node, its key, and what is read from it by connecting."""

    address: str
    node: str | None = None
    key: str | None = None
    characteristic: tuple[Characteristic, ...] = ()


def address(value: object) -> str:
    """Return an address in capitals."""
    if not isinstance(value, str) or not ADDRESS.fullmatch(value.upper()):
        raise ValueError('an address such as "A4:C1:38:11:22:33"')
    return value.upper()


def encryption_key(value: object) -> str:
    """Accept a key of 16 bytes (12 for some older kinds) in hexadecimal digits."""
    if not isinstance(value, str) or not KEY.fullmatch(value):
        raise ValueError("32 hexadecimal digits")
    return value


def uuid(value: object) -> str:
    """Return a UUID in full; 4 digits stand for one of the Bluetooth SIG."""
    name = text(value).lower()
    try:
        full = f"0000{name}-0000-1000-8000-00805f9b34fb" if len(name) == len("2a6e") else name
        return str(UUID(full))
    except ValueError:
        raise ValueError('a UUID, or 4 digits such as "2a6e"') from None


def _tables(
    value: object, most: int, checks: Checks, needed: tuple[str, ...]
) -> list[dict[str, Any]]:
    if not isinstance(value, list) or len(value) > most:
        raise ValueError(f"at most {most} tables")
    return [_table(place, each, checks, needed) for place, each in enumerate(value)]


def _table(place: int, table: object, checks: Checks, needed: tuple[str, ...]) -> dict[str, Any]:
    if not isinstance(table, dict):
        raise ValueError(f"[{place}]: a table")  # noqa: TRY004 - one error for every bad setting
    given = {}
    for name, value in table.items():
        if name not in checks:
            raise ValueError(f"[{place}].{name}: there are {', '.join(sorted(checks))}")
        try:
            given[name] = checks[name](value)
        except ValueError as error:
            raise ValueError(f"[{place}].{name}: {error}") from error
    for name in needed:
        if name not in given:
            raise ValueError(f"[{place}].{name}: must be given")
    return given


def characteristics(value: object) -> tuple[Characteristic, ...]:
    """Accept `[[ble.device.characteristic]]` tables."""
    checks: Checks = {
        "uuid": uuid,
        "quantity": bridge_name,
        "type": one_of(*LAYOUTS),
        "byte_order": one_of("little", "big"),
        "scale": number(-1e12, 1e12),
        "unit": text,
        "notify": boolean,
        "interval": number(1, 86_400),
    }
    return tuple(
        Characteristic(**each)
        for each in _tables(value, CHARACTERISTICS_MAX, checks, ("uuid", "quantity"))
    )


def devices(value: object) -> tuple[BleDevice, ...]:
    """Accept `[[ble.device]]` tables."""
    checks: Checks = {
        "address": address,
        "node": bridge_name,
        "key": encryption_key,
        "characteristic": characteristics,
    }
    return tuple(BleDevice(**each) for each in _tables(value, DEVICES_MAX, checks, ("address",)))


@dataclass(frozen=True, kw_only=True, slots=True)
class BleSettings(BridgeSettings):
    """What is listened for."""

    adapter: str = key(bridge_name, "the Bluetooth adapter", "hci0")
    scanning: str = key(
        one_of("active", "passive"),
        "`active` asks devices for more; `passive` costs their batteries nothing and needs BlueZ"
        " 5.56 with experimental features",
        "active",
    )
    accept: str = key(
        one_of("all", "listed"),
        "`all` devices that can be decoded, or those that are `listed`",
        "all",
    )
    rssi: int = key(whole_number(-127, 20), "the weakest signal that is taken, in dBm", -100)
    interval: float = key(
        number(0, 86_400), "seconds between two advertisements of a device that are taken", 1.0
    )
    stall: float = key(
        number(0.1, 86_400),
        "seconds without any advertisement before the scan counts as stalled",
        60.0,
    )
    device: tuple[BleDevice, ...] = key(devices, "the [devices](#ble) that are listed", ())
