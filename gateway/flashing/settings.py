"""The settings of a node: a checked TOML file for people, and JSON for the board."""

import re
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from ssl import PEM_HEADER, PEM_cert_to_DER_cert
from typing import Any

from gateway.bridges.settings import bridge_name, instance
from gateway.config.errors import raise_all
from gateway.config.load import document
from gateway.config.reader import Reader
from gateway.flashing.hardware import BOARDS, SENSORS
from gateway.settings.checks import boolean, number, one_of, text, whole_number
from gateway.settings.declaration import Mistake, check, key, keys_of, table, tables

SENSORS_MAX = 8
"""Sensors of one node: limited by a frame and by the board's memory."""

NODE_BYTES_MAX = 64
PIN_MAX = 48
CERTIFICATE_MAX = 2048
"""Bytes of a certificate for which a board has memory."""

KEY = re.compile("[0-9a-fA-F]{32}")
ADDRESS = re.compile("[0-9a-fA-F]{16}")

LINKS = {
    "usb": (),
    "uart": ("uart", "baud"),
    "ble": ("encryption_key",),
    "mqtt": ("wifi", "broker"),
}
"""Links to the gateway, with the attributes that only apply there."""


def node_name(value: object) -> str:
    """Accept a name that is valid in a topic and in a frame."""
    name = bridge_name(value)
    if len(name.encode()) > NODE_BYTES_MAX:
        raise ValueError(f"1 to {NODE_BYTES_MAX} bytes without /, + and #")
    return name


@check("a pin", type=["integer", "string"])
def led_pin(value: object) -> int | str:
    """Accept the number or name of a pin."""
    if isinstance(value, str):
        return text(value)
    try:
        return whole_number(0, PIN_MAX)(value)
    except ValueError as error:
        raise ValueError(f"{error}, or the name of a pin") from error


@check("hexadecimal digits", type="string", pattern=f"^{KEY.pattern}$")
def bthome_key(value: object) -> str:
    """Accept a key of 16 bytes."""
    if not isinstance(value, str) or KEY.fullmatch(value) is None:
        raise ValueError("32 hexadecimal digits")
    return value


@check("path of a file with one certificate", type="string")
def certificate(value: object) -> str:
    """Accept a PEM file with one certificate, and return the base64 of its DER form."""
    path = text(value)
    try:
        content = Path(path).read_text(encoding="ascii")
    except OSError as error:
        raise ValueError(f"a file that can be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise ValueError("a PEM file") from error
    if content.count(PEM_HEADER) != 1:
        raise ValueError(f"a PEM file with one certificate ({content.count(PEM_HEADER)} are in it)")
    try:
        der = PEM_cert_to_DER_cert(content[content.index(PEM_HEADER) :])
    except ValueError as error:
        raise ValueError("a PEM file that ends with its certificate") from error
    if len(der) > CERTIFICATE_MAX:
        raise ValueError(f"a certificate of at most {CERTIFICATE_MAX} bytes, not {len(der)}")
    return b64encode(der).decode()


@check("addresses with names", type="object", additionalProperties={"type": "string"})
def thermometer_names(value: object) -> dict[str, str]:
    """Accept a table such as `{ 28ff641e8216047c = "boiler" }`."""
    if not isinstance(value, dict) or not all(map(ADDRESS.fullmatch, value)):
        raise ValueError(
            'addresses of 16 hexadecimal digits, each with a name: {28ff... = "boiler"}'
        )
    names = {address.lower(): instance(name) for address, name in value.items()}
    if len(set(names.values())) < len(names):
        raise ValueError("a name of its own for each address")
    return names


@dataclass(frozen=True, slots=True)
class SensorSettings:
    """A sensor that is wired to the board: `[[sensor]]`."""

    driver: str = key(one_of(*SENSORS), "what is wired")
    name: str | None = key(instance, "tells its readings from those of other sensors", None)
    pin: int | None = key(whole_number(0, PIN_MAX), "number of its pin", None)
    clock: int | None = key(whole_number(0, PIN_MAX), "number of its clock pin", None)
    i2c: int = key(whole_number(0, 1), "which of the board's I2C buses", 0)
    sda: int | None = key(whole_number(0, PIN_MAX), "number of the data pin", None)
    scl: int | None = key(whole_number(0, PIN_MAX), "number of the clock pin", None)
    address: int | None = key(whole_number(0x08, 0x77), "address on the I2C bus", None)
    quantity: str | None = key(bridge_name, "what is measured", None)
    unit: str | None = key(text, "in which unit", None)
    scale: float | None = key(
        number(-1e9, 1e9), "what a volt, or a step of a load cell, is worth", None
    )
    offset: float | None = key(number(-1e9, 1e9), "what is added", None)
    single: bool | None = key(boolean, "whether it is the only one on its wire", None)
    names: dict[str, str] | None = key(
        thermometer_names, "names of thermometers by their addresses", None
    )

    def mistakes(self, given: frozenset[str]) -> Iterator[Mistake]:
        """Yield the keys that the driver lacks or does not know."""
        kind = SENSORS[self.driver]
        for name in kind.keys:
            if name not in given:
                yield name, None, f"must be given with driver = {self.driver!r}"
        for name in sorted(given - {"driver", "name", *kind.keys, *kind.optional}):
            yield name, getattr(self, name), f"has no meaning with driver = {self.driver!r}"
        if "address" in given and self.address not in (*kind.addresses, None):
            allowed = " or ".join(f"0x{each:02x}" for each in kind.addresses)
            yield "address", f"0x{self.address:02x}", f"{allowed} with driver = {self.driver!r}"
        if self.single and self.names:
            problem = "names are for thermometers that have others beside them"
            yield "single", self.single, problem
        if self.driver == "ds18b20" and self.name and not self.single:
            yield "name", self.name, "names for addresses, or single = true"

    @property
    def series(self) -> frozenset[str]:
        """Its quantities with their names; a thermometer on a wire also has its address."""
        kind = SENSORS[self.driver]
        quantities = kind.quantities
        if kind.chosen:
            quantities = (self.quantity or kind.chosen,)
        if self.single:
            quantities = ("temperature",)
        suffix = f"/{self.name}" if self.name else ""
        named = {f"temperature/{each}" for each in (self.names or {}).values()}
        return frozenset(f"{each}{suffix}" for each in quantities) | named

    @property
    def places(self) -> frozenset[str]:
        """Where it is wired: its pins, and its address on a bus."""
        pins = [each for each in (self.pin, self.clock) if each is not None]
        found = [f"pin {each}" for each in pins]
        if self.sda is not None:
            address = self.address or SENSORS[self.driver].addresses[0]
            found.append(f"address 0x{address:02x} of I2C bus {self.i2c}")
        return frozenset(found)


@dataclass(frozen=True, slots=True)
class WifiSettings:
    """The network of a node with link `mqtt`: `[wifi]`."""

    ssid: str = key(text, "name of the network")
    password: str = key(text, "its password")


@dataclass(frozen=True, slots=True)
class BrokerSettings:
    """The gateway, as a node with link `mqtt` reaches it: `[broker]`."""

    host: str = key(text, "address of the gateway, better than a name: a node waits for names")
    port: int | None = key(whole_number(1, 65_535), "its port; 1883, or 8883 with `ca_file`", None)
    username: str | None = key(text, "how the node logs in", None)
    password: str | None = key(text, "with which password", None)
    topic: str | None = key(text, "how its two topics begin; nodes/<name> by default", None)
    ca_file: str | None = key(
        certificate, "PEM file of the certificate that the gateway proves itself by: TLS", None
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeSettings:
    """The settings that a node is given once."""

    board: str = key(one_of(*BOARDS), "kind of board")
    name: str = key(node_name, "the node's name")
    interval: float = key(number(0.1, 86_400), "seconds between two samples", 10.0)
    link: str = key(one_of(*LINKS), "how the gateway is reached", "usb")
    encryption_key: str | None = key(
        bthome_key, "32 hexadecimal digits that encrypt, with link `ble`", None, name="key"
    )
    uart: int = key(whole_number(0, 2), "which UART, with link `uart`", 1)
    baud: int = key(whole_number(1_200, 921_600), "bits a second, with link `uart`", 115_200)
    spill: int | None = key(
        whole_number(8, 16_384), "KiB of the flash for what does not fit into the memory", None
    )
    wifi: WifiSettings | None = table(WifiSettings, default=None)
    broker: BrokerSettings | None = table(BrokerSettings, default=None)
    led: int | str | None = key(
        led_pin, 'pin of an LED that shows how the node is; "LED" on a Pico', None
    )
    sensors: tuple[SensorSettings, ...] = tables(
        SensorSettings, name="sensor", most=SENSORS_MAX, needed=True
    )

    def mistakes(self, given: frozenset[str]) -> Iterator[Mistake]:
        """Yield keys that do not apply to the link, and series that two sensors share."""
        yield from self._mistakes_of_sensors()
        names = {each.attribute: each.name for each in keys_of(NodeSettings)}
        for link, attributes in LINKS.items():
            if self.link != link:
                for each in sorted(given.intersection(attributes)):
                    problem = f'has no meaning without link = "{link}"'
                    yield names[each], "..." if link == "mqtt" else getattr(self, each), problem
        if self.link == "mqtt":
            for each in sorted({"wifi", "broker"} - given):
                yield each, None, 'must be given with link = "mqtt"'

    def _mistakes_of_sensors(self) -> Iterator[Mistake]:
        known: dict[str, int] = {}
        wired: dict[str, int] = {}
        for index, each in enumerate(self.sensors):
            rest = SENSORS[each.driver].rest
            if self.interval < rest:
                problem = f"at least {rest:g}: a {each.driver} needs as long between two samples"
                yield "interval", self.interval, problem
            for series in sorted(each.series & known.keys()):
                place = known[series]
                problem = f"a name of its own: sensor[{place}] measures {series}, too"
                yield f"sensor[{index}].name", each.name, problem
                break
            known.update(dict.fromkeys(each.series - known.keys(), index))
            for where in sorted(each.places & wired.keys()):
                key_name = "address" if "address" in where else "pin"
                problem = f"not {where}: sensor[{wired[where]}] is wired to it"
                yield f"sensor[{index}].{key_name}", getattr(each, key_name), problem
            wired.update(dict.fromkeys(each.places - wired.keys(), index))


def read_settings(path: Path) -> NodeSettings:
    """Return a file's settings; raise ConfigurationError with all mistakes."""
    reader = Reader(str(path))
    settings = reader.read(NodeSettings, document(path))
    raise_all(reader.mistakes)
    return settings


def board_settings(settings: NodeSettings) -> dict[str, Any]:
    """Return the settings as the board reads them (`firmware/main.py`)."""
    line: dict[str, Any] = {}
    if settings.link == "uart":
        line = {"uart": settings.uart, "baud": settings.baud}
    elif settings.encryption_key is not None:
        line = {"key": settings.encryption_key}
    elif settings.wifi is not None and settings.broker is not None:
        line = {"wifi": asdict(settings.wifi), "broker": _broker(settings.broker)}
    return {
        "name": settings.name,
        "interval_ms": round(settings.interval * 1000),
        "link": settings.link,
        **line,
        **({} if settings.spill is None else {"spill_bytes": 1024 * settings.spill}),
        **({} if settings.led is None else {"led": settings.led}),
        "sensors": [_sensor(each) for each in settings.sensors],
    }


def _broker(settings: BrokerSettings) -> dict[str, Any]:
    values = asdict(settings)
    values["ca"] = values.pop("ca_file")
    return {name: value for name, value in values.items() if value is not None}


def _sensor(settings: SensorSettings) -> dict[str, Any]:
    kind = SENSORS[settings.driver]
    values = {each.name: getattr(settings, each.attribute) for each in keys_of(SensorSettings)}
    wanted = ("driver", "name", *kind.keys, *kind.optional)
    return {name: values[name] for name in wanted if values[name] is not None}
