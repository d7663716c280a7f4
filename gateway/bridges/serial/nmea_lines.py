"""Sentences of NMEA 0183, the protocol of ships, GPS receivers and weather stations."""

import re
from collections.abc import Callable
from functools import reduce
from operator import xor

from gateway.bridges.readings.event_time import time_of
from gateway.bridges.readings.reading import RefusedReadingError, Value, instance_name
from gateway.bridges.readings.registry import base_quantity
from gateway.bridges.serial.sample import NoReadingError, Sample

SENTENCE = re.compile(rb"[$!]([\x20-\x7e]{3,900})\*([0-9A-Fa-f]{2})")

TAG_BLOCK = re.compile(rb"\\([\x20-\x5b\x5d-\x7e]{1,80})\*([0-9A-Fa-f]{2})\\")
"""The prefix of a sentence in NMEA 0183 4.0: its source, its time, its group."""

UNITS = {
    "latitude": "°",
    "longitude": "°",
    "altitude": "m",
    "speed": "m/s",
    "course": "°",
    "heading": "°",
    "wind_angle": "°",
    "wind_direction": "°",
    "wind_speed": "m/s",
    "temperature": "°C",
    "humidity": "%",
    "pressure": "hPa",
    "voltage": "V",
    "current": "A",
    "volume": "m³",
    "volume_flow_rate": "L/s",
    "distance": "m",
    "frequency": "Hz",
    "rotation": "°",
    "level": "%",
}
"""Units of a sentence's values, which are converted if it uses others."""

KNOT = 1852 / 3600
"""Metres a second."""

Fields = dict[str, object]


def parse_nmea(line: bytes) -> Sample:
    """Return a sentence's values; none for an unknown kind.

    Raises NoReadingError if it is no sentence, RefusedReadingError if its checksum fails or is
    missing.
    """
    sentence, time = _after_tags(line.strip())
    match = SENTENCE.fullmatch(sentence)
    if match is None:
        if sentence[:1] in (b"$", b"!") and b"," in sentence:
            raise RefusedReadingError(f"a sentence without a checksum: {sentence[:20]!r}")
        raise NoReadingError("no sentence")
    _check(match)
    talker, *cells = match[1].decode("ascii").split(",")
    read = SENTENCES.get(talker[-3:])
    try:
        fields = read(cells) if read is not None else {}
    except (ValueError, LookupError):
        raise RefusedReadingError(f"cells of {talker}: {','.join(cells)[:60]!r}") from None
    return Sample(fields, time=time, units={name: _unit(name) for name in fields})


def _after_tags(line: bytes) -> tuple[bytes, int | None]:
    """Return the sentence after tag blocks, and the time in them."""
    time = None
    while match := TAG_BLOCK.match(line):
        _check(match)
        for tag in match[1].decode("ascii").split(","):
            if tag.startswith("c:"):
                time = time_of(tag.removeprefix("c:"))
        line = line[match.end() :]
    return line, time


def _check(match: re.Match[bytes]) -> None:
    """Raise RefusedReadingError if the checksum is wrong."""
    check, right = int(match[2], 16), reduce(xor, match[1])
    if right != check:
        raise RefusedReadingError(f"checksum {check:02X}: {right:02X} is right")


def _unit(name: str) -> str:
    """Return the unit of a value, empty for one without."""
    quantity = base_quantity(name)
    return UNITS.get(name if quantity is None else quantity.name, "")


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
    """Return the non-empty values: an empty cell is unknown to the device."""
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


def _gns(cells: list[str]) -> Fields:
    """Return a position from several systems, of which at least one has a fix."""
    if not cells[5].strip("N"):
        return {}
    return _known(
        latitude=_degrees(cells[1], cells[2]),
        longitude=_degrees(cells[3], cells[4]),
        satellites=_number(cells[6]),
        altitude=_number(cells[8]),
    )


def _rmc(cells: list[str]) -> Fields:
    if cells[1] != "A" or _invalid(cells, 11):
        return {}
    return _known(
        latitude=_degrees(cells[2], cells[3]),
        longitude=_degrees(cells[4], cells[5]),
        speed=_speed(cells[6], "N"),
        course=_number(cells[7]),
    )


def _gll(cells: list[str]) -> Fields:
    status = cells[5] if len(cells) > 5 else "A"  # version 1.5 has no status
    if status != "A" or _invalid(cells, 6):
        return {}
    return _known(latitude=_degrees(cells[0], cells[1]), longitude=_degrees(cells[2], cells[3]))


def _vtg(cells: list[str]) -> Fields:
    if _invalid(cells, 8):
        return {}
    return _known(
        course=_number(cells[0]),
        course_magnetic=_number(cells[2]) if len(cells) > 2 else None,
        speed=_speed_of(cells[4:8]),
    )


def _invalid(cells: list[str], place: int) -> bool:
    """Return whether the mode of NMEA 0183 2.3 at this place says that nothing is valid."""
    return len(cells) > place and cells[place] == "N"


SPEEDS = {"M": 1.0, "K": 1 / 3.6, "N": KNOT, "S": 1609.344 / 3600}
"""Metres a second for one unit of a sentence."""


def _speed(cell: str, unit: str) -> float | None:
    speed = _number(cell)
    return None if speed is None else round(speed * SPEEDS[unit], 4)


def _speed_of(cells: list[str]) -> float | None:
    """Return the first speed of cells with their units; they repeat it in several units."""
    for place in range(0, len(cells) - 1, 2):
        speed = _speed(cells[place], cells[place + 1])
        if speed is not None:
            return speed
    return None


MDA_CELLS = 20

WINDS = {"R": "apparent", "T": "true"}
"""Apparent wind on a moving vessel, and true wind without its movement."""


def _mwv(cells: list[str]) -> Fields:
    if cells[4] != "A":
        return {}
    return _wind(WINDS[cells[1]], _number(cells[0]), _speed(cells[2], cells[3]))


def _wind(which: str, angle: float | None, speed: float | None) -> Fields:
    return _known(**{f"wind_angle_{which}": angle, f"wind_speed_{which}": speed})


def _side(cells: list[str]) -> float | None:
    """Return the angle of a wind from the left or the right of the bow, clockwise."""
    angle = _number(cells[0])
    return angle if angle is None or cells[1] != "L" else round(360 - angle, 4) % 360


def _mwd(cells: list[str]) -> Fields:
    return _known(
        wind_direction=_number(cells[0]),
        wind_direction_magnetic=_number(cells[2]),
        wind_speed=_speed_of([*cells[6:8], *cells[4:6]]),
    )


def _mda(cells: list[str]) -> Fields:
    """Return all values of a weather station's sentence."""
    cells = [*cells, *[""] * (MDA_CELLS - len(cells))]
    return _known(
        pressure=_hectopascal(cells[2:4]) or _hectopascal(cells[0:2]),
        temperature=_celsius(_number(cells[4]), cells[5]),
        temperature_water=_celsius(_number(cells[6]), cells[7]),
        humidity=_number(cells[8]),
        temperature_dew_point=_celsius(_number(cells[10]), cells[11]),
        wind_direction=_number(cells[12]),
        wind_direction_magnetic=_number(cells[14]),
        wind_speed=_speed_of([*cells[18:20], *cells[16:18]]),
    )


def _mmb(cells: list[str]) -> Fields:
    return _known(pressure=_hectopascal(cells[2:4]) or _hectopascal(cells[0:2]))


def _mhu(cells: list[str]) -> Fields:
    dew = _celsius(_number(cells[2]), "".join(cells[3:4])) if len(cells) > 2 else None
    return _known(humidity=_number(cells[0]), temperature_dew_point=dew)


def _hectopascal(cells: list[str]) -> float | None:
    """Return a pressure that is given in bar or in inches of mercury."""
    pressure = _number(cells[0]) if len(cells) == 2 else None
    if pressure is None:
        return None
    return round(pressure * {"B": 1000.0, "I": 33.86389}[cells[1]], 4)


def _hdg(cells: list[str]) -> Fields:
    heading, deviation = _number(cells[0]), _number(cells[1]) or 0.0
    if heading is None:
        return {}
    corrected = heading + (-deviation if cells[2] == "W" else deviation)
    return _known(heading_magnetic=round(corrected, 4) % 360)


def _vhw(cells: list[str]) -> Fields:
    return _known(
        heading=_number(cells[0]),
        heading_magnetic=_number(cells[2]) if len(cells) > 2 else None,
        speed_water=_speed_of(cells[4:8]),
    )


def _celsius(value: float | None, unit: str) -> float | None:
    if value is None or unit in ("C", ""):
        return value
    return round({"K": value - 273.15, "F": (value - 32) / 1.8}[unit], 4)


XDR: dict[str, tuple[str, dict[str, float]]] = {
    "H": ("humidity", {"P": 1.0, "%": 1.0}),
    "P": ("pressure", {"B": 1000.0, "P": 0.01, "H": 1.0}),
    "A": ("rotation", {"D": 1.0}),
    "V": ("volume", {"M": 1.0, "L": 0.001}),
    "VP": ("level", {"P": 1.0}),
    "U": ("voltage", {"V": 1.0}),
    "I": ("current", {"A": 1.0}),
    "F": ("frequency", {"H": 1.0}),
    "R": ("volume_flow_rate", {"L": 1.0}),
    "D": ("distance", {"M": 1.0}),
}
"""Quantities by the transducer's type, with the factor of each unit; a tank's level is in %."""

PLAIN = frozenset({
    *("", "air", "temp", "temperature", "tempair", "temp_air", "airtemp", "air_temp"),
    *("baro", "barometer", "press", "pressure", "hum", "humidity", "rh", "volt", "voltage"),
})  # fmt: skip
"""Names of transducers that add nothing to the quantity."""


def _xdr(cells: list[str]) -> Fields:
    fields: Fields = {}
    for index in range(0, len(cells) - 3, 4):
        kind, cell, unit, name = cells[index : index + 4]
        value = _number(cell)
        if value is None:
            continue
        quantity, value = _measured(kind, value, unit, name)
        key, several = quantity, 1
        while key in fields:
            several += 1
            key = f"{quantity}_{several}"
        fields[key] = value
    return fields


def _measured(kind: str, value: float, unit: str, name: str) -> tuple[str, float]:
    """Return the quantity of a transducer with its name appended, and its converted value."""
    if kind == "C" and unit in ("C", "K", "F"):
        return _named("temperature", name), _celsius(value, unit) or 0.0
    quantity, units = XDR.get(kind + unit, XDR.get(kind, ("", {})))
    if unit not in units:
        return instance_name(name or kind), value
    scale = units[unit]
    return _named(quantity, name), value if scale == 1.0 else round(value * scale, 4)


def _named(quantity: str, name: str) -> str:
    instance = re.sub("[^a-z0-9]+", "_", name.lower()).strip("_")
    return quantity if instance in PLAIN else f"{quantity}_{instance}"


SENTENCES: dict[str, Callable[[list[str]], Fields]] = {
    "GGA": _gga,
    "GNS": _gns,
    "RMC": _rmc,
    "GLL": _gll,
    "VTG": _vtg,
    "MWV": _mwv,
    "MWD": _mwd,
    "MDA": _mda,
    "MMB": _mmb,
    "MHU": _mhu,
    "MTA": lambda cells: _known(temperature=_celsius(_number(cells[0]), "".join(cells[1:2]))),
    "VWR": lambda cells: _wind("apparent", _side(cells), _speed_of(cells[2:8])),
    "VWT": lambda cells: _wind("true", _side(cells), _speed_of(cells[2:8])),
    "XDR": _xdr,
    "MTW": lambda cells: _known(temperature_water=_celsius(_number(cells[0]), "".join(cells[1:2]))),
    "DBT": lambda cells: _known(distance=_number(cells[2])),
    "DPT": lambda cells: _known(distance=_number(cells[0])),
    "HDT": lambda cells: _known(heading=_number(cells[0])),
    "HDM": lambda cells: _known(heading_magnetic=_number(cells[0])),
    "HDG": _hdg,
    "VHW": _vhw,
}
