"""Register maps of devices as files: a name for an included map, or the path of another."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gateway.bridges.modbus.register import LAYOUTS, REGISTERS_MAX, TABLES, Register
from gateway.bridges.readings.number_forms import invalid
from gateway.bridges.settings import bridge_name, key, tables
from gateway.config.errors import ConfigurationError
from gateway.config.load import document
from gateway.config.reader import Reader
from gateway.settings.checks import one_of, text, whole_number
from gateway.settings.declaration import check
from gateway.settings.quantities import duration

MAPS = Path(__file__).parent / "maps"

DEFAULTS = ("table", "type", "word_order", "invalid")
"""Keys of a map that are defaults of its registers."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DeviceMap:
    """A file: the registers of a device, and the manual they come from."""

    title: str = key(text, "the devices")
    source: str = key(text, "the manual")
    table: str = key(one_of(*TABLES), "of registers without one", "holding")
    type: str = key(one_of(*LAYOUTS), "of registers without one", "uint16")
    word_order: str = key(one_of("big", "little"), "of registers without one", "big")
    invalid: tuple[float, ...] | str = key(invalid, "of registers without one", ())
    register: tuple[Register, ...] = tables(
        Register, name="register", most=REGISTERS_MAX, needed=True
    )


def map_names() -> list[str]:
    """Return the names of the included maps."""
    return sorted(file.stem for file in MAPS.glob("*.toml"))


@check("text", type="string", minLength=1)
def device_map(value: object) -> tuple[Register, ...]:
    """Accept a name or a path; return the registers."""
    name = text(value)
    file = MAPS / f"{name}.toml"
    if name not in map_names():
        file = Path(name)
        if not file.is_file():
            raise ValueError(f"one of {', '.join(map_names())}, or the path of a file")
    try:
        return read_map(file).register
    except ConfigurationError as error:
        raise ValueError(f"a map without a mistake: {error}") from error


def read_map(file: Path) -> DeviceMap:
    """Return a map; raise ConfigurationError."""
    content: dict[str, Any] = document(file)
    usual = {name: content[name] for name in DEFAULTS if name in content}
    registers = content.get("register")
    if isinstance(registers, list):
        content["register"] = [
            usual | each if isinstance(each, dict) else each for each in registers
        ]
    reader = Reader(str(file))
    found: DeviceMap = reader.read(DeviceMap, content)
    if reader.mistakes:
        raise reader.mistakes[0]
    return found


@dataclass(frozen=True, slots=True)
class MappedDevice:
    """A device with a map of registers."""

    map: tuple[Register, ...] = key(
        device_map, "name of a [map](#maps-of-devices), or path of your own"
    )
    device: int = key(whole_number(0, 255), "the device's (unit) identifier", 1)
    node: str | None = key(bridge_name, "node of the readings; by default the bridge's name", None)
    interval: float | None = key(
        duration(0.05, 86_400),
        "time between two requests; by default that of the map, or 10 s",
        None,
    )

    @property
    def registers(self) -> tuple[Register, ...]:
        """The registers of this device."""
        return tuple(
            replace(
                each,
                device=self.device,
                node=self.node,
                interval=each.interval if self.interval is None else self.interval,
            )
            for each in self.map or ()  # none where it is invalid
        )
