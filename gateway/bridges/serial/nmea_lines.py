"""Sentences of NMEA 0183, which ships, GPS receivers and weather stations speak."""

import re
from collections.abc import Callable
from functools import reduce
from operator import xor

from gateway.bridges.readings.reading import RefusedReadingError, Value
from gateway.bridges.serial.sample import NoReadingError, Sample

SENTENCE = re.compile(rb"[$!]([\x20-\x7e]{3,900})\*([0-9A-Fa-f]{2})")

Fields = dict[str, object]


def parse_nmea(line: bytes) -> Sample:
    """Return what a sentence says; one of a kind that is not known here says nothing.

    Raises NoReadingError for what is no sentence, RefusedReadingError for one that fails its
    checksum, or has none.
    """
    match = SENTENCE.fullmatch(line.strip())
    if match is None:
        if line[:1] in (b"$", b"!") and b"," in line:
            raise RefusedReadingError(f"a sentence without a checksum: {line[:20]!r}")
        raise NoReadingError("no sentence")
    body, check = match[1], int(match[2], 16)
    if reduce(xor, body) != check:
        raise RefusedReadingError(f"checksum {check:02X}: {reduce(xor, body):02X} is right")
    talker, *cells = body.decode("ascii").split(",")
    read = SENTENCES.get(talker[-3:])
    try:
        return Sample(read(cells) if read is not None else {})
    except (ValueError, IndexError):
        raise RefusedReadingError(f"cells of {talker}: {','.join(cells)[:60]!r}") from None


def _number(cell: str) -> float | None:
    return float(cell) if cell else None


def _degrees(cell: str, side: str) -> float | None:
    """Return degrees of ddmm.mmm, south and west below 0."""
    if not cell:
        return None
    point = cell.index(".") if "." in cell else len(cell)
    degrees = float(cell[: point - 2] or 0) + float(cell[point - 2 :]) / 60
    return round(-degrees if side in ("S", "W") else degrees, 7)


def _known(**fields: Value | None) -> Fields:
    """Return what the sentence says: empty cells are what the device does not know."""
    return {name: value for name, value in fields.items() if value is not None}


def _gga(cells: list[str]) -> Fields:
    if cells[5] in ("", "0"):
        return {}
    return _known(
        latitude=_degrees(cells[1], cells[2]),
        longitude=_degrees(cells[3], cells[4]),
        satellites=_number(cells[6]),
        altitude=_number(cells[8]),
    )


def _rmc(cells: list[str]) -> Fields:
    if cells[1] != "A":
        return {}
    knots = _number(cells[6])
    return _known(
        latitude=_degrees(cells[2], cells[3]),
        longitude=_degrees(cells[4], cells[5]),
        speed=None if knots is None else round(knots * 1852 / 3600, 4),
        course=_number(cells[7]),
    )


def _gll(cells: list[str]) -> Fields:
    return _known(latitude=_degrees(cells[0], cells[1]), longitude=_degrees(cells[2], cells[3]))


WIND_SPEED = {"M": 1.0, "K": 1 / 3.6, "N": 1852 / 3600}
"""Metres a second for one unit of a sentence."""


def _mwv(cells: list[str]) -> Fields:
    if cells[4] != "A":
        return {}
    speed = _number(cells[2])
    return _known(
        wind_direction=_number(cells[0]),
        wind_speed=None if speed is None else round(speed * WIND_SPEED[cells[3]], 4),
    )


XDR = {"C": "temperature", "H": "humidity", "P": "pressure", "V": "volume", "U": "voltage"}
"""Quantities by the transducer's type; pressure is given in bar or pascal."""


def _xdr(cells: list[str]) -> Fields:
    fields: Fields = {}
    for index in range(0, len(cells) - 3, 4):
        kind, cell, unit, name = cells[index : index + 4]
        value = _number(cell)
        if value is None:
            continue
        if kind == "P":
            value = round(value * (1000.0 if unit == "B" else 0.01), 4)
        quantity = XDR.get(unit if unit == "C" else kind)
        fields[quantity if quantity and quantity not in fields else name or kind] = value
    return fields


SENTENCES: dict[str, Callable[[list[str]], Fields]] = {
    "GGA": _gga,
    "RMC": _rmc,
    "GLL": _gll,
    "MWV": _mwv,
    "XDR": _xdr,
    "MTW": lambda cells: _known(temperature=_number(cells[0])),
    "DBT": lambda cells: _known(distance=_number(cells[2])),
    "DPT": lambda cells: _known(distance=_number(cells[0])),
    "HDT": lambda cells: _known(heading=_number(cells[0])),
    "VHW": lambda cells: _known(heading=_number(cells[0])),
    "VTG": lambda cells: _known(course=_number(cells[0])),
}
