"""Values of characteristics out of their bytes, and what marks that there is none."""

import struct

import pytest

from gateway.bridges.ble.ble_settings import Characteristic
from tests.support.table import table

VALUES: list[tuple[dict[str, object], bytes, object]] = [
    ({}, b"\x66\x08", 2150),
    ({"scale": 0.01}, b"\x66\x08\xff", 21.5),
    ({"byte_order": "big"}, b"\x08\x66", 2150),
    ({"type": "float32"}, struct.pack("<f", 230.2), 230.2),
    ({"type": "float32", "scale": 0.1, "byte_order": "big"}, struct.pack(">f", 230.2), 23.02),
    ({"type": "float64"}, struct.pack("<d", 0.1), 0.1),
    ({"type": "bool"}, b"\x01", True),
    ({"type": "text"}, b"on\0", "on"),
]


@table(("settings", "data", "value"), VALUES)
def test_values(settings: dict[str, object], data: bytes, value: object) -> None:
    assert Characteristic("2a6e", "x", **settings).value(data) == value  # type: ignore[arg-type]


@pytest.mark.parametrize("form", ["int16", "float64", "bool"])
def test_too_few_bytes(form: str) -> None:
    with pytest.raises(ValueError, match=f"0 bytes are no {form}"):
        Characteristic("2a6e", "x", type=form).value(b"")


def test_what_marks_no_value() -> None:
    unknown = b"\x00\x80"  # of temperature, by the Bluetooth SIG
    assert Characteristic("2a6e", "x", invalid="usual").is_invalid(unknown)
    assert Characteristic("2a6e", "x", invalid=(0x8000,)).is_invalid(unknown)
    assert not Characteristic("2a6e", "x").is_invalid(unknown)
    assert not Characteristic("2a6e", "x", type="text", invalid="usual").is_invalid(unknown)
    assert not Characteristic("2a6e", "x", invalid="usual").is_invalid(b"\x80")
