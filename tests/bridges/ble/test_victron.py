"""Victron's readouts, encrypted here as its document says, and read by victron-ble."""

import struct

import pytest
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import ECB

from gateway.bridges.ble.decoders import UndecodableError, victron
from gateway.bridges.ble.victron import MAKER
from tests.bridges.ble.test_decoders import advertisement
from tests.support.table import table

KEY = bytes.fromhex("aff4d0995b7d1e176c0c33ecb9e70dcd")
MONITOR, CHARGER, UNKNOWN = 2, 1, 0x7E

Bits = list[tuple[int, int]]
"""Numbers with their bits, the first one in the lowest bits."""


def readout(kind: int, fields: Bits, counter: int = 5) -> bytes:
    number, place = 0, 0
    for value, size in fields:
        number |= (value & ((1 << size) - 1)) << place
        place += size
    plain = number.to_bytes((place + 7) // 8, "little")
    block = Cipher(AES(KEY), ECB()).encryptor().update(counter.to_bytes(16, "little"))
    sealed = bytes(one ^ other for one, other in zip(plain, block, strict=False))
    return b"\x10\x02" + struct.pack("<HBH", 0xA389, kind, counter) + KEY[:1] + sealed


STARTER: Bits = [(90, 16), (1253, 16), (0, 16), (1234, 16), (0, 2), (-1500, 22), (100, 20)]

READOUTS: list[tuple[int, Bits, dict[str, object]]] = [
    (
        MONITOR,
        [*STARTER, (505, 10)],
        {
            "voltage/": 12.53,
            "voltage/auxiliary": 12.34,
            "current/": -1.5,
            "charge_consumed/": -10.0,
            "battery/": 50.5,
            "duration/time_to_go": 90,
            "alarm/": "no_alarm",
        },
    ),
    (
        CHARGER,
        [(3, 8), (0, 8), (1380, 16), (55, 16), (34, 16), (120, 16), (0x1FF, 9)],
        {
            "voltage/": 13.8,
            "current/": 5.5,
            "power/panel": 120,
            "energy/today": 340,
            "charge_state/": "bulk",
            "charger_error/": "no_error",
        },
    ),
]


@table("kind, fields, expected", READOUTS)
def test_readouts(kind: int, fields: Bits, expected: dict[str, object]) -> None:
    heard = advertisement(manufacturer_data={MAKER: readout(kind, fields)})
    found = victron(KEY).decode(heard)
    assert found is not None
    values = {f"{each[0]}/{each[3]}": each[1] for each in found}
    assert values == {**expected, "signal_strength/": -60}


def test_what_is_no_readout_or_has_another_key() -> None:
    data = readout(*READOUTS[0][:2])
    for key in (None, bytes(16)):
        with pytest.raises(UndecodableError, match="undecrypted"):
            victron(key).decode(advertisement(manufacturer_data={MAKER: data}))
    for other in (b"", data[:8], b"\x02" + data[1:], readout(UNKNOWN, [(1, 16)])):
        assert victron(KEY).decode(advertisement(manufacturer_data={MAKER: other})) is None
    with pytest.raises(UndecodableError, match="malformed"):
        victron(KEY).decode(advertisement(manufacturer_data={MAKER: readout(CHARGER, [(2, 8)])}))
