"""The parsers of other makers' sensors, on advertisements as their devices send them."""

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.bridges.ble.decoders import (
    Advertisement,
    Decoders,
    Theengs,
    UndecodableError,
    decode,
    theengs,
)
from tests.support.table import table

XIAOMI = "0000fe95-0000-1000-8000-00805f9b34fb"

RUUVI = bytes.fromhex("0512FC5394C37C0004FFFC040CAC364200CDCBB8334C884F")
"""Data format 5, the test vector of its specification."""

GOVEE = b"\x00" + (213_442).to_bytes(3, "big") + b"\x64\x00"
"""H5075: temperature and humidity in one number, then the battery."""

MIBEACON = bytes.fromhex("5020aa01b0" + "64aed0a8654c" + "0d1004" + "db00" + "f901")
"""LYWSDCGQ: frame control, product, counter, address, and one object with two numbers."""

TILT = bytes.fromhex("0215a495bb10c5b14b44b5121370f02d74de004403f8c5")
"""An iBeacon whose major is °F, and whose minor is the gravity in thousandths."""

BTHOME = "0000fcd2-0000-1000-8000-00805f9b34fb"

ADVERTISEMENTS: list[tuple[str, dict[str, Any], dict[str, tuple[object, str | None]]]] = [
    (
        "ruuvitag",
        {"manufacturer_data": {0x0499: RUUVI}},
        {
            "temperature": (24.3, "°C"),
            "humidity": (53.49, "%"),
            "pressure": (1000.44, "hPa"),
            "voltage": (2977, "mV"),
        },
    ),
    (
        "govee",
        {"name": "GVH5075_2762", "manufacturer_data": {0xEC88: GOVEE}},
        {"temperature": (21.3, "°C"), "humidity": (44.2, "%"), "battery": (100, "%")},
    ),
    (
        "xiaomi",
        {"service_data": {XIAOMI: MIBEACON}, "address": "4C:65:A8:D0:AE:64"},
        {"temperature": (21.9, "°C"), "humidity": (50.5, "%")},
    ),
    (
        "inkbird",
        {"name": "sps", "manufacturer_data": {2096: b"\x0f\x12\x00Z\xc7W\x06"}},
        {"temperature": (20.96, "°C"), "humidity": (46.23, "%"), "battery": (87, "%")},
    ),
    (
        "thermopro",
        {"name": "TP357 (2142)", "manufacturer_data": {0xF1C2: b"\x00\x1d\x02,"}},
        {"temperature": (24.1, "°C"), "humidity": (29, "%")},
    ),
    (
        "tilt",
        {"manufacturer_data": {0x4C: TILT}},
        {"temperature": (68, "°F"), "specific_gravity": (1.016, "SG")},
    ),
    (
        "bthome, a charge and whether it is low",
        {"service_data": {BTHOME: bytes.fromhex("40016415010F01")}},
        {"battery": (100, "%"), "battery_low": (True, None), "generic": (True, None)},
    ),
]


def advertisement(**given: Any) -> Advertisement:
    fields: dict[str, Any] = {
        "address": "A4:C1:38:11:22:33",
        "name": None,
        "rssi": -60,
        "service_data": {},
        "manufacturer_data": {},
        "service_uuids": [],
        "time": 1.0,
    }
    return Advertisement(**fields | given)


def decoded(given: dict[str, Any]) -> dict[str, tuple[object, str | None]]:
    """Return what the first decoder finds that knows it, by quantity."""
    found = decode(Decoders().of_device(None), advertisement(**given))
    return {quantity: (value, unit) for quantity, value, unit, *_ in found or ()}


@pytest.mark.uncovered
@table("maker, given, expected", ADVERTISEMENTS)
def test_other_makers_advertisements(
    maker: str, given: dict[str, Any], expected: dict[str, tuple[object, str | None]]
) -> None:
    found = decoded(given)
    assert {name: found.get(name) for name in expected} == expected


@pytest.mark.uncovered
@given(
    maker=st.sampled_from([0x0499, 0xEC88, 0x0001, 0x8803, 0x8801]),
    data=st.binary(max_size=64),
    service=st.binary(max_size=64),
    name=st.sampled_from([None, "GVH5075_2762", "GVH5179_1", "Ruuvi 884F", "LYWSD03MMC"]),
)
def test_any_bytes_are_decoded_or_refused(
    maker: int, data: bytes, service: bytes, name: str | None
) -> None:
    heard = advertisement(
        name=name, manufacturer_data={maker: data}, service_data={XIAOMI: service}
    )
    for decoder in Decoders().of_device(None):
        with contextlib.suppress(UndecodableError):
            decoder.decode(heard)


def test_a_family_without_keys_does_not_decode_a_device_that_has_one() -> None:
    """Otherwise anybody could send readings in its name."""
    decoders = Decoders().of_device(bytes(16))
    assert decode(decoders, advertisement(manufacturer_data={0x0499: RUUVI})) is None


def test_the_decoder_that_knows_a_device_is_tried_first() -> None:
    decoders = Decoders().of_device(None)
    heard = advertisement(manufacturer_data={0x0499: RUUVI})
    first = decode(decoders, heard)
    assert first
    assert decode(decoders[:1], heard) == first
    with pytest.raises(UndecodableError, match="malformed"):
        decode(decoders, advertisement(manufacturer_data={0x0499: b""}))
    other = advertisement(**ADVERTISEMENTS[1][1])
    other.manufacturer_data[0x0499] = b""
    assert decode(decoders, other)


PROPERTIES = {
    "tempc": {"unit": "°C", "name": "temperature"},
    "tempc2": {"unit": "°C", "name": "temperature"},
    "volt_batt_1": {"unit": "V", "name": "voltage"},
    "volt": {"unit": "V", "name": "voltage"},
    "hum": {"unit": "%", "name": "humidity"},
    "lowbatt": {"unit": "status", "name": "battery"},
    "open": {"unit": "status", "name": "door"},
    "button1": {"unit": "int", "name": "button1 press type"},
    "mac": {"unit": "string", "name": "MAC address"},
    "packet": {"unit": "int", "name": "packet id"},
}


class Library:
    """Stands for TheengsDecoder: answers one model to what has the service data `01`."""

    def __init__(self, **said: object) -> None:
        self.said = said
        self.asked: list[dict[str, object]] = []

    def decodeBLE(self, text: str) -> str | None:  # noqa: N802 - the library's name
        packet = json.loads(text)
        self.asked.append(packet)
        if packet.get("servicedata") != "01":
            return None
        return json.dumps(packet | {"model_id": "MODEL"} | self.said)

    def getProperties(self, model: str) -> str | None:  # noqa: N802 - the library's name
        return json.dumps({"properties": PROPERTIES}) if model == "MODEL" else None


def test_theengs_values_have_their_quantities_units_and_instances() -> None:
    library = Library(
        tempc=21.5,
        tempc2=-3,
        volt=3.0,
        volt_batt_1=12.8,
        hum=48,
        open=True,
        lowbatt=False,
        button1=2,
        mac="AA",
        packet=7,
    )
    heard = advertisement(
        name="x",
        service_data={XIAOMI: b"\x02", "f000aa00-0451-4000-b000-000000000000": b"\x01"},
        manufacturer_data={0x0499: b"\xff"},
    )
    found = Theengs(library).decode(heard)
    assert found is not None
    assert [tuple(each) for each in found] == [
        ("temperature", 21.5, "°C", "", False),
        ("temperature", -3, "°C", "2", False),
        ("voltage", 12.8, "V", "batt_1", False),
        ("voltage", 3.0, "V", "", False),
        ("humidity", 48, "%", "", False),
        ("battery_low", False, None, "", False),
        ("door", True, None, "", False),
        ("button1", "2", None, "", True),
        ("signal_strength", -60, "dBm", "", False),
    ]
    assert library.asked[0] == {
        "id": "A4:C1:38:11:22:33",
        "rssi": -60,
        "name": "x",
        "manufacturerdata": "9904ff",
        "servicedatauuid": "fe95",
        "servicedata": "02",
    }


def test_what_theengs_knows_by_name_alone_is_nothing() -> None:
    library = Library(mac="AA:BB")
    assert Theengs(library).decode(advertisement(service_data={XIAOMI: b"\x01"})) is None
    assert Theengs(library).decode(advertisement(manufacturer_data={1: b"\x01"})) is None
    assert library.asked[-1]["manufacturerdata"] == "010001"


@pytest.mark.deep(
    "TIDEGATE_THEENGS=1 make test, after pip install '.[theengs]', which builds it",
    "TIDEGATE_THEENGS",
)
def test_theengs_itself_decodes_what_other_parsers_do_and_is_asked_last() -> None:
    """Real advertisements; TheengsDecoder has no wheels, and needs a C++ compiler and CMake."""
    decoder = theengs(None)
    assert isinstance(Decoders().of_device(None)[-1], Theengs)
    for _, fields, expected in ADVERTISEMENTS[:3]:
        values = decoder.decode(advertisement(**fields)) or []
        found = {quantity: value for quantity, value, *_ in values}
        for quantity in ("temperature", "humidity"):
            assert found[quantity] == pytest.approx(expected[quantity][0], abs=0.06), fields
