"""Advertisements of a node, read by the parser that Home Assistant uses."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESCCM
from hypothesis import given
from hypothesis import strategies as st
from node.bthome import Encrypted, Plain, encode_object, encrypt, groups
from node.counter import _BLOCK, _COUNT_MAX, _FIRST, Counter

from gateway.bridges.ble.decoders import Advertisement, Decoded, bthome
from tests.firmware.scripts.bthome_vectors import ADDRESS, KEY, READINGS, aes
from tests.support.nodes import micropython as interpreter
from tests.support.table import table

SERVICE = "0000fcd2-0000-1000-8000-00805f9b34fb"
SCRIPTS = Path(__file__).parent / "scripts"


class Receiver:
    """A receiver of one board's advertisements, with its key or without one."""

    def __init__(self, key: bytes | None = None) -> None:
        self._decoder = bthome(key)
        self._time = 0.0

    def hear(self, data: bytes) -> Decoded:
        assert len(data) <= 31
        assert data[:3] == b"\x02\x01\x06"
        assert (data[3], data[4:7]) == (len(data) - 4, b"\x16\xd2\xfc")
        self._time += 1
        address = ":".join(f"{byte:02X}" for byte in ADDRESS)
        said = {SERVICE: data[7:]}
        decoded = self._decoder.decode(Advertisement(address, None, -60, said, {}, [], self._time))
        assert decoded is not None
        return [each for each in decoded if each[0] != "signal_strength"]


def test_home_assistants_parser_reads_all_that_is_advertised(tmp_path: Path) -> None:
    plain, sealed = Receiver(), Receiver(KEY)
    kinds: list[tuple[Plain | Encrypted, Receiver]] = [
        (Plain(), plain),
        (Encrypted(aes, ADDRESS, Counter(str(tmp_path / "n")).count), sealed),
    ]
    for kind, receiver in kinds:
        parts = groups(READINGS, kind.size_max)
        values = {
            name: value
            for part in parts
            for name, value, *_ in receiver.hear(kind.advertisement(part))
        }
        assert (values["temperature_1"], values["temperature_2"]) == (-21.37, 21.5)
        assert (values["humidity"], values["pressure"], values["voltage"]) == (48.26, 1006.53, 3.3)
        assert (values["opening"], values["count"]) == (True, 65_535)


@given(st.integers(-32768, 32767), st.integers(0, 65535), st.integers(0, (1 << 24) - 1))
def test_every_value_arrives(temperature: int, humidity: int, pressure: int) -> None:
    readings: Any = [
        ("pressure", (pressure, -2), "hPa"),
        ("humidity", (humidity, -2), "%"),
        ("temperature", (temperature, -2), "°C"),
    ]
    (part,) = groups(readings, Plain.size_max)
    found = {name: value for name, value, *_ in Receiver().hear(Plain().advertisement(part))}
    assert found == {
        "temperature": temperature / 100,
        "humidity": humidity / 100,
        "pressure": pressure / 100,
    }


@table(
    "quantity, value, unit, expected",
    [
        ("temperature", (215, -1), "°C", "026608"),
        ("temperature", (21374, -3), "°C", "025908"),
        ("temperature", (2, 1), "°C", "02d007"),
        ("temperature", -0.5, "°C", "02ceff"),
        ("temperature_12", 1, "°C", "026400"),
        ("temperature", 400, "°C", None),
        ("temperature", float("nan"), "°C", None),
        ("temperature", float("inf"), "°C", None),
        ("temperature", 1e12, "°C", None),
        ("temperature", 70, "°F", None),
        ("temperature", "warm", "°C", None),
        ("humidity", -1, "%", None),
        ("motion", False, None, "2100"),
        ("carbon_dioxide", 400, "ppm", "129001"),
        ("my_own", 1, None, None),
        ("_1", 1, None, None),
    ],
)
def test_an_object(quantity: str, value: Any, unit: str | None, expected: str | None) -> None:
    found = encode_object(quantity, value, unit)
    assert (found and found.hex()) == expected


def test_nothing_known_is_no_advertisement() -> None:
    assert groups([("my_own", 1, None)], Plain.size_max) == []


@given(st.binary(min_size=1, max_size=16), st.binary(min_size=13, max_size=13))
def test_encrypted_as_by_a_library(content: bytes, nonce: bytes) -> None:
    sealed = AESCCM(KEY, tag_length=4).encrypt(nonce, content, None)
    assert encrypt(aes, nonce, content) == (sealed[:-4], sealed[-4:])


def test_no_number_comes_twice(tmp_path: Path) -> None:
    path = tmp_path / "counter"
    numbers = [Counter(str(path)).count() for _ in range(3)]
    assert numbers == [_FIRST, _FIRST + _BLOCK, _FIRST + 2 * _BLOCK]
    counter = Counter(str(path))
    last = [counter.count() for _ in range(_BLOCK + 1)][-1]
    assert (last, path.read_bytes()) == (_FIRST + 4 * _BLOCK, b"%d" % (_FIRST + 5 * _BLOCK))
    for content in (b"x", b"", str(_COUNT_MAX).encode()):
        path.write_bytes(content)
        with pytest.raises(OSError, match="number"):
            Counter(str(path)).count()
    with pytest.raises(OSError, match="No such file"):
        Counter(str(tmp_path / "none" / "counter")).count()


@pytest.mark.micropython
def test_both_pythons_advertise_the_same(micropython: str, tmp_path: Path) -> None:
    reported = []
    for number, python in enumerate((micropython, sys.executable)):
        done = subprocess.run(
            [python, str(SCRIPTS / "bthome_vectors.py"), str(tmp_path / f"counter{number}")],
            env={
                **interpreter.environment(interpreter.FIRMWARE),
                "PYTHONPATH": str(interpreter.FIRMWARE),
            },
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        reported.append(done.stdout)
    assert reported[0] == reported[1]
    assert reported[0].count("\n") == 3
