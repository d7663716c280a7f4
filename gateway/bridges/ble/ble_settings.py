"""The keys of a `[[ble]]` table."""

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID

from gateway.bridges.readings.number_forms import invalid, is_marker, shortest
from gateway.bridges.settings import BridgeSettings, bridge_name, instance, key, quantity, tables
from gateway.settings.checks import any_number, boolean, one_of, text, whole_number
from gateway.settings.declaration import Mistake, check
from gateway.settings.quantities import duration

ADDRESS = re.compile("(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}")
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

DEVICES_MAX = 200
CHARACTERISTICS_MAX = 32


@check("text", type="string", pattern=f"^{ADDRESS.pattern}$")
def address(value: object) -> str:
    """Return an address in upper case."""
    if not isinstance(value, str) or not ADDRESS.fullmatch(value):
        raise ValueError('an address such as "A4:C1:38:11:22:33"')
    return value.upper()


def node_of(address: str) -> str:
    """Return the node of a device that is not configured."""
    return address.replace(":", "").lower()


@check("text", type="string", pattern=f"^({KEY.pattern})$")
def encryption_key(value: object) -> str:
    """Accept a key of 16 bytes (12 for some older kinds) in hexadecimal digits."""
    if not isinstance(value, str) or not KEY.fullmatch(value):
        raise ValueError("32 hexadecimal digits")
    return value


def uuid(value: object) -> str:
    """Return a full UUID; 4 digits stand for one of the Bluetooth SIG."""
    name = text(value).lower()
    try:
        full = f"0000{name}-0000-1000-8000-00805f9b34fb" if len(name) == len("2a6e") else name
        return str(UUID(full))
    except ValueError:
        raise ValueError('a UUID, or 4 digits such as "2a6e"') from None


@dataclass(frozen=True, slots=True)
class Characteristic:
    """A GATT characteristic, read at each interval or notified."""

    uuid: str = key(uuid, 'UUID; 4 digits such as `"2a6e"` are one of the Bluetooth SIG')
    quantity: str = key(quantity, "what it measures")
    instance: str | None = key(
        instance, "distinguishes it from others of its quantity; by default the device's", None
    )
    type: str = key(one_of(*LAYOUTS), "type of the value", "int16")
    byte_order: str = key(one_of("little", "big"), "order of the bytes of a number", "little")
    scale: float = key(any_number, "what a number is multiplied by", 1.0)
    unit: str | None = key(text, "unit of the reading", None)
    invalid: tuple[float, ...] | str = key(
        invalid,
        'raw numbers that mean "no value"; `"usual"`: the lowest signed, the highest unsigned, NaN',
        (),
    )
    notify: bool = key(boolean, "the device sends it by notifications", default=False)
    interval: float = key(duration(1, 86_400), "time between two reads", 60.0)

    def value(self, data: bytes) -> bool | int | float | str:
        """Return the value of the first bytes; raise ValueError if there are too few."""
        if self.type == "text":
            return data.decode("utf-8", "replace").rstrip("\0")
        packed = self._packed(data)
        if len(packed) < struct.calcsize(f">{LAYOUTS[self.type]}"):
            raise ValueError(f"{len(data)} bytes are no {self.type}")
        value = struct.unpack(f">{LAYOUTS[self.type]}", packed)[0]
        if self.type == "float32":
            value = shortest(value)
        if isinstance(value, bool) or self.scale == 1.0:
            return bool(value) if isinstance(value, bool) else value
        return float(round(value * self.scale, 9))

    def is_invalid(self, data: bytes) -> bool:
        """Return whether the first bytes are a marker of no value."""
        if self.type in ("text", "bool") or not self.invalid:
            return False
        return is_marker(self.invalid, LAYOUTS[self.type], self._packed(data))

    def _packed(self, data: bytes) -> bytes:
        """Return the first bytes in big-endian order."""
        packed = data[: struct.calcsize(f">{LAYOUTS[self.type]}")]
        return packed[::-1] if self.byte_order == "little" else packed


@dataclass(frozen=True, slots=True)
class BleDevice:
    """A listed device."""

    address: str = key(address, 'such as `"A4:C1:38:11:22:33"`')
    node: str | None = key(bridge_name, "its node; by default the address without colons", None)
    instance: str | None = key(
        instance, "distinguishes its readings from those of other devices of the node", None
    )
    encryption_key: str | None = key(
        encryption_key,
        "its key: 32 hexadecimal digits (24 for older kinds of Xiaomi)",
        None,
        name="key",
    )
    counter_restarts: bool = key(
        boolean,
        "its packet counter may restart, as after a battery change; old packets [can then be "
        "replayed](#ble)",
        default=False,
    )
    characteristic: tuple[Characteristic, ...] = tables(
        Characteristic, name="characteristic", most=CHARACTERISTICS_MAX
    )

    @property
    def node_name(self) -> str:
        """The node of its readings."""
        return self.node or node_of(self.address)

    def instance_of(self, each: Characteristic) -> str:
        """Return the instance of a characteristic's readings."""
        return each.instance or self.instance or ""


@dataclass(frozen=True, kw_only=True, slots=True)
class BleSettings(BridgeSettings):
    """What is listened for."""

    adapter: str = key(bridge_name, "Bluetooth adapter", "hci0")
    scanning: str = key(
        one_of("active", "passive"),
        "`active` requests more data from devices; `passive` saves their batteries and needs "
        "BlueZ 5.56 with experimental features",
        "active",
    )
    accept: str = key(
        one_of("all", "listed"),
        "all devices that can be decoded, or those that are listed",
        "all",
    )
    rssi: int = key(whole_number(-127, 20), "weakest accepted signal, in dBm", -100)
    interval: float = key(
        duration(0, 86_400),
        "time between two accepted advertisements of a device; events and changes of booleans "
        "are always accepted",
        1.0,
    )
    stall: float = key(
        duration(0.1, 86_400),
        "time without any advertisement after which the scan is restarted",
        60.0,
    )
    device: tuple[BleDevice, ...] = tables(BleDevice, name="device", most=DEVICES_MAX)

    def mistakes(self, _given: frozenset[str]) -> Iterator[Mistake]:
        """Yield devices that are listed twice."""
        known: dict[str, int] = {}
        for index, each in enumerate(self.device or ()):
            if known.setdefault(each.address, index) != index:
                problem = f"device[{known[each.address]}] has this address"
                yield f"device[{index}].address", each.address, problem
