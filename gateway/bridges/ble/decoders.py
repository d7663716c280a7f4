"""Decodes advertisements with Home Assistant's parser libraries.

An entry point of the group `tidegate.ble_decoders` names a function that takes a device's key
(bytes, or None) and returns a decoder. It raises ImportError where its parser is not installed.
"""

import json
import logging
import re
import struct
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib import import_module
from importlib.metadata import entry_points
from inspect import signature
from typing import Any, NamedTuple, Protocol

from gateway.bridges.readings.reading import Value
from gateway.bridges.readings.registry import binary_name, quantity_name

GROUP = "tidegate.ble_decoders"

NO_READINGS = frozenset({"packet_id", "device_type_id", "firmware_version"})
"""Values of parsers that describe the transport."""

STRENGTH = "signal_strength"

MALFORMED = "malformed"
"""The counter of advertisements on which a parser failed."""

BTHOME = frozenset(
    f"0000{number}-0000-1000-8000-00805f9b34fb" for number in ("fcd2", "181c", "181e")
)
"""Service data of BTHome: version 2, and version 1 plain and encrypted."""

BASE_UUID = "-0000-1000-8000-00805f9b34fb"
"""The rest of a Bluetooth SIG UUID after its four digits."""

LAST = "theengs"
"""The decoder that is tried last: a device family's own parser supports keys and stable names."""

FAMILIES = (
    *("atc", "bluemaestro", "govee", "inkbird", "jaalee", "kegtron", "leaone", "moat"),
    *("mopeka_iot", "oralb", "qingping", "rapt", "ruuvitag", "sensirion", "sensorpro"),
    *("sensorpush", "thermobeacon", "thermopro", "tilt", "xiaogui", "xiaomi"),
)
"""Parsers of Home Assistant's community, each in a package of its own: `govee-ble`."""

PARSER = "BluetoothDeviceData"
"""The end of the name of a parser's class."""

MODELS_MAX = 256
"""Models whose values are cached; those of others are looked up again."""

NO_UNIT_OF_THEENGS = ("string", "hex", "int", "0")

KEY_OF_SEVERAL = re.compile(r"[a-z]+(\d+)?(?:_(\w+))?")

logger = logging.getLogger(__name__)


class DecodedValue(NamedTuple):
    """A value of an advertisement; an event, such as a pressed button, has no duration."""

    quantity: str
    value: Value
    unit: str | None = None
    instance: str = ""
    is_event: bool = False


Decoded = Sequence[tuple[Any, ...]]
"""The fields of a DecodedValue: quantity, value and unit, and perhaps more."""


Shape = tuple[str | None, frozenset[str], frozenset[int]]


@dataclass(frozen=True, slots=True)
class Advertisement:
    """One advertisement; `time` is in seconds and never decreases."""

    address: str
    name: str | None
    rssi: int
    service_data: dict[str, bytes]
    manufacturer_data: dict[int, bytes]
    service_uuids: list[str]
    time: float

    @property
    def shape(self) -> Shape:
        """What tells its kind: its name, and what its data belong to."""
        return self.name, frozenset(self.service_data), frozenset(self.manufacturer_data)


class UndecodableError(Exception):
    """An advertisement of a known kind without usable values; `counter` names the reason."""

    def __init__(self, counter: str) -> None:
        super().__init__(counter)
        self.counter = counter


class Decoder(Protocol):
    """Decodes the advertisements of one device."""

    def decode(self, advertisement: Advertisement) -> Decoded | None:
        """Return the values; None for another kind. Raises UndecodableError."""


class Decoders:
    """The installed kinds of decoders."""

    def __init__(self) -> None:
        self._make: list[Any] = []
        found = {each.name: each.load for each in entry_points(group=GROUP)}
        own: dict[str, Callable[[], Any]] = {
            name: partial(partial, family, name) for name in FAMILIES
        } | {"victron": lambda: victron}
        for name, load in sorted({**found, **own}.items(), key=lambda each: each[0] == LAST):
            try:
                make = load()
                make(None)
            except (ImportError, AttributeError) as error:
                logger.debug("decoder %s is skipped: %s", name, error)
            else:
                self._make.append(make)

    def of_device(self, key: bytes | None) -> list[Decoder]:
        """Return a decoder of each kind for one device; with a key, of each that supports it."""
        made = (make(key) for make in self._make)
        return [each for each in made if each is not None]


def decode(decoders: list[Decoder], advertisement: Advertisement) -> list[DecodedValue] | None:
    """Return the values that the first decoder finds which knows the device; None if none does.

    That one is tried first from now on. Raises UndecodableError.
    """
    known: list[DecodedValue] | None = None
    failure: UndecodableError | None = None
    for place, decoder in enumerate(decoders):
        try:
            found = decoder.decode(advertisement)
        except UndecodableError as error:
            if error.counter != MALFORMED:
                raise
            failure = error  # it may be another family's
            continue
        if found:
            if not isinstance(decoder, Theengs):  # a family's own parser names series as before
                decoders.insert(0, decoders.pop(place))
            return [DecodedValue(*each) for each in found]
        known = known if found is None else []
    if failure is not None and known is None:
        raise failure
    return known


def bthome(key: bytes | None) -> "BThome":
    """Return a decoder of BTHome, versions 1 and 2; with a key it rejects unencrypted packets."""
    from bthome_ble import BTHomeBluetoothDeviceData

    # it warns about every packet, and anybody can send packets without limit; here they are
    # counted
    logging.getLogger("bthome_ble").setLevel(logging.CRITICAL)
    return BThome(BTHomeBluetoothDeviceData(bindkey=key))


def family(name: str, key: bytes | None) -> "SensorData | None":
    """Return a decoder with the parser `<name>_ble`; None with a key that it does not support."""
    module = import_module(f"{name}_ble")
    logging.getLogger(module.__name__).setLevel(logging.CRITICAL)  # as for BTHome
    parser = next(each for name, each in vars(module).items() if name.endswith(PARSER))
    if "bindkey" in signature(parser).parameters:
        return SensorData(parser(bindkey=key))
    return SensorData(parser()) if key is None else None


def victron(key: bytes | None) -> Decoder:
    """Return a decoder of Victron's devices, if victron-ble is installed."""
    devices = import_module("victron_ble.devices")
    from gateway.bridges.ble.victron import Victron

    return Victron(devices, key)


def theengs(_key: bytes | None) -> "Theengs":
    """Return a decoder for devices of Theengs Decoder, if TheengsDecoder is installed."""
    import TheengsDecoder

    return Theengs(TheengsDecoder)


class SensorData:
    """A parser of the sensor-state-data family."""

    def __init__(self, parser: Any) -> None:
        self.parser = parser

    def decode(self, advertisement: Advertisement) -> Decoded | None:
        """Return the values, none but for the signal strength; None for another kind."""
        update = parsed(self.parser, _service_info(advertisement))
        found = _values(update)
        if any(each.quantity != STRENGTH for each in found):
            return found
        return None if update.title is None else []


class BThome(SensorData):
    """BTHome, whose parser silently drops repeated packets and old counters; here they are counted.

    The parser forgets its counter at a restart, and after two packets in a row with a wrong check,
    which anybody can send. So only `is_new` decides: it stores the counter of each packet, and
    returns False for a packet that may have been received before.
    """

    def __init__(self, parser: Any) -> None:
        super().__init__(parser)
        self.is_new: Callable[[int, bytes], bool] = lambda _counter, _packet: True

    def decode(self, advertisement: Advertisement) -> Decoded | None:
        """Return the values; raises UndecodableError for a repeated or untrusted packet."""
        if BTHOME.isdisjoint(advertisement.service_data):
            return None
        parser, info = self.parser, _service_info(advertisement)
        parser.encryption_counter = 0.0
        update = parsed(parser, info)
        if parser.downgrade_detected:
            raise UndecodableError("downgrades")
        if parser.encryption_scheme.name != "NONE":
            if parser.bindkey is None or parser.decryption_failed or not parser.bindkey_verified:
                raise UndecodableError("undecrypted")
            own = BTHOME.intersection(advertisement.service_data)
            packet = b"".join(advertisement.service_data[each] for each in sorted(own))
            if not self.is_new(int(parser.encryption_counter), packet):
                raise UndecodableError("duplicates")
        if parser.last_service_info is not info:
            raise UndecodableError("duplicates")
        return _values(update)


class Theengs:
    """Theengs Decoder: about a hundred kinds of devices that do not encrypt."""

    def __init__(self, library: Any) -> None:
        self._library = library

    def decode(self, advertisement: Advertisement) -> Decoded | None:
        """Return the values; None for another kind, and for one that contains only its name.

        Text and numbers without a unit are left out: they describe the transport, or are for an
        app.
        """
        for packet in _theengs_packets(advertisement):
            text = self._library.decodeBLE(json.dumps(packet))
            decoded = json.loads(text) if text else {}
            found = list(self._values(decoded))
            if found:
                strength = DecodedValue(STRENGTH, advertisement.rssi, "dBm")
                return [*found, strength]
        return None

    def _values(self, decoded: dict[str, Any]) -> Iterator[DecodedValue]:
        series = _theengs_series(self._library, str(decoded.get("model_id", "")))
        for key, (quantity, unit, instance) in series.items():
            value = decoded.get(key)
            if unit == "event":
                if value:
                    yield DecodedValue(quantity, str(value), None, instance, is_event=True)
            elif unit == "status" and isinstance(value, bool | int):
                yield DecodedValue(quantity, bool(value), None, instance)
            elif isinstance(value, int | float) and not isinstance(value, bool):
                yield DecodedValue(quantity, value, unit, instance)


def _theengs_packets(advertisement: Advertisement) -> Iterator[dict[str, object]]:
    """Yield an advertisement in Theengs' terms, once for each of its data."""
    base = {"id": advertisement.address, "rssi": advertisement.rssi}
    if advertisement.name:
        base["name"] = advertisement.name
    makers = [
        company.to_bytes(2, "little").hex() + data.hex()
        for company, data in advertisement.manufacturer_data.items()
    ]
    maker = {"manufacturerdata": makers[0]} if makers else {}
    for uuid, data in advertisement.service_data.items():
        short = uuid[4:8] if uuid.endswith(BASE_UUID) else uuid
        yield base | maker | {"servicedatauuid": short, "servicedata": data.hex()}
    for each in makers:
        yield base | {"manufacturerdata": each}


@lru_cache(MODELS_MAX)
def _theengs_series(library: Any, model: str) -> dict[str, tuple[str, str, str]]:
    """Return quantity, unit and instance of a model's values, by Theengs' keys.

    If a model has several values of a quantity, the suffix of the key is the instance: `tempc2` is
    `temperature` with the instance `2`, `volt_batt` is `voltage` with the instance `batt`.
    """
    text = library.getProperties(model)
    properties = json.loads(text)["properties"] if text else {}
    named: dict[str, tuple[str, str]] = {}
    for key, each in properties.items():
        unit = "event" if key.startswith("button") else each["unit"]
        if unit not in NO_UNIT_OF_THEENGS and key != "packet":
            word = each["name"].partition(" press type")[0].replace(" ", "_").replace("-", "_")
            low = key in ("batt_low", "lowbatt")
            named[key] = ("battery_low" if low else quantity_name(word), unit)
    many = Counter(quantity for quantity, _ in named.values())
    return {
        key: (quantity, unit, _instance_of_key(key) if many[quantity] > 1 else "")
        for key, (quantity, unit) in named.items()
    }


def _instance_of_key(key: str) -> str:
    match = KEY_OF_SEVERAL.fullmatch(key)
    return "" if match is None else "-".join(filter(None, match.groups()))


def parsed(parser: Any, info: Any) -> Any:
    """Return a parser's result; raise UndecodableError where the parser fails on the bytes."""
    try:
        return parser.update(info)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, struct.error):
        raise UndecodableError(MALFORMED) from None


def _service_info(advertisement: Advertisement) -> Any:
    from habluetooth import BluetoothServiceInfoBleak

    return BluetoothServiceInfoBleak(
        name=advertisement.name or advertisement.address,
        address=advertisement.address,
        rssi=advertisement.rssi,
        manufacturer_data=advertisement.manufacturer_data,
        service_data=advertisement.service_data,
        service_uuids=advertisement.service_uuids,
        source="local",
        device=None,  # type: ignore[arg-type]  # parsers do not ask for it
        advertisement=None,
        connectable=False,
        time=advertisement.time,
        tx_power=None,
    )


def _values(update: Any) -> list[DecodedValue]:
    found: list[DecodedValue] = []
    for key, each in update.entity_values.items():
        value = each.native_value
        if key.key in NO_READINGS or not isinstance(value, bool | int | float | str):
            continue
        description = update.entity_descriptions.get(key)
        unit = getattr(description, "native_unit_of_measurement", None)
        shown = str(getattr(unit, "value", unit)) if unit else None
        found.append(DecodedValue(key.key, value, shown, _part(key)))
    for key, each in update.binary_entity_values.items():
        name = binary_name(key.key)
        found.append(DecodedValue(name, bool(each.native_value), None, _part(key)))
    for key, event in update.events.items():
        kind = str(event.event_type)
        found.append(DecodedValue(key.key, kind, None, _part(key), is_event=True))
    return found


def _part(key: Any) -> str:
    """Return the part of a device that a value belongs to, such as a second probe."""
    return str(getattr(key, "device_id", None) or "")
