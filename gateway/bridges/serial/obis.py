"""Data lines of electricity meters: OBIS codes with values, as in IEC 62056-21 and -61."""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta, timezone

from gateway.bridges.serial.sample import Measured

LINE = re.compile(
    r"(?:(?P<medium>[0-9]{1,3})-(?P<channel>[0-9]{1,3}):)?"
    r"(?P<code>[0-9A-F]{1,3}\.[0-9A-F]{1,3}(?:\.[0-9]{1,3})?)(?:\*(?P<stored>[0-9]{1,3}))?"
    r"(?P<values>(?:\([^()]*\))+)"
)
NUMBER = re.compile(r"(-?[0-9]+(?:\.[0-9]+)?)(?:\*([A-Za-z0-9³]+))?")
TIME = re.compile(r"([0-9]{12})([SW]?)")

PRESENT = "255"
"""Follows a code for present values; other numbers are values of past months."""

UNITS = {
    "kWh": "kWh",
    "Wh": "Wh",
    "kW": "kW",
    "W": "W",
    "V": "V",
    "A": "A",
    "Hz": "Hz",
    "kvarh": "kvarh",
    "varh": "varh",
    "kvar": "kvar",
    "var": "var",
    "m3": "m³",
    "GJ": "GJ",
    "MJ": "MJ",
    "dm3": "L",
    "deg": "°",
    "kVA": "kVA",
    "VA": "VA",
}

PHASES = {20: "l1", 40: "l2", 60: "l3"}

SUMS = {
    1: "power",
    2: "power_returned",
    3: "reactive_power",
    4: "reactive_power_returned",
    9: "apparent_power",
    13: "power_factor",
    14: "frequency",
    16: "power_net",
}
"""Instantaneous values (`C.7.0`) of all phases together."""

PER_PHASE = {
    **SUMS,
    11: "current",
    12: "voltage",
}
"""The same of a phase; its number is 20, 40 or 60 higher."""

TOTALS = {
    1: "energy",
    2: "energy_returned",
    3: "reactive_energy",
    4: "reactive_energy_returned",
    16: "energy_net",
}
"""Meter totals (`C.8.E`), E for a tariff."""

OTHER_MEDIA = {
    3: "gas",
    **dict.fromkeys((6, 7, 8), "water"),
    **dict.fromkeys((4, 10, 12), "energy"),
}
"""By the type of a meter on the M-Bus: gas, heat, water, cold (EN 13757-3)."""

CODES_OF_OTHERS = ("24.2.1", "24.2.3", "24.3.0")
"""Codes of their totals; the last one is that of DSMR before version 4."""

ZONES = {"S": timezone(timedelta(hours=2)), "W": timezone(timedelta(hours=1))}
"""Summer and winter time in meters that mark it; all of them are in Central Europe."""


def parse(lines: list[str]) -> Iterator[Measured]:
    """Yield the values of a telegram's lines; lines with unknown codes have none."""
    matches = [match for match in map(LINE.fullmatch, lines) if match is not None]
    types = dict(_types(matches))
    for match in matches:
        number = _number(match["values"])
        if number is None or match["stored"] not in (None, PRESENT):
            continue
        value, unit = number
        if match["medium"] == "0":
            measured = _of_other_medium(match, value, unit, types)
        else:
            measured = of_electricity(match["code"], value, unit)
        if measured is not None:
            yield measured


def time_of(lines: list[str]) -> int | None:
    """Return a telegram's time in milliseconds since 1970; None for one without a zone."""
    for line in lines:
        match = LINE.fullmatch(line)
        if match is None or match["code"] != "1.0.0":
            continue
        time = TIME.fullmatch(match["values"].strip("()"))
        if time is not None and time[2]:
            try:
                measured = datetime.strptime(time[1], "%y%m%d%H%M%S").replace(tzinfo=ZONES[time[2]])
            except ValueError:
                return None
            return round(measured.astimezone(UTC).timestamp() * 1000)
    return None


def _number(values: str) -> tuple[float, str | None] | None:
    """Return the number in the last brackets, with its unit, which may be in those before."""
    *others, last = values.strip("()").split(")(")
    match = NUMBER.fullmatch(last)
    if match is None:
        return None
    unit = match[2] or next((each for each in others[-1:] if each in UNITS), None)
    if unit is not None and unit not in UNITS:
        return None
    return float(match[1]), UNITS[unit] if unit else None


def of_electricity(code: str, value: float, unit: str | None) -> Measured | None:
    """Return the value of an electricity meter's code (`C.D.E`), None for an unknown one."""
    group, _, rest = code.partition(".")
    if not group.isdecimal():
        return None
    number = int(group)
    if rest in ("7", "7.0"):
        phase = number - number % 20
        names = SUMS if phase == 0 else PER_PHASE
        quantity = names.get(number - phase)
        if quantity is None or (phase and phase not in PHASES):
            return None
        return Measured(quantity, value, unit, PHASES.get(phase, ""))
    kind, _, tariff = rest.partition(".")
    if kind != "8" or number not in TOTALS or not tariff.isdecimal():
        return None
    return Measured(TOTALS[number], value, unit, "" if tariff == "0" else f"t{tariff}")


def _types(matches: list[re.Match[str]]) -> Iterator[tuple[str, str]]:
    """Yield what meters on the M-Bus measure, by their channels."""
    for match in matches:
        kind = match["values"].strip("()")
        if match["medium"] == "0" and match["code"] == "24.1.0" and kind.isdecimal():
            yield match["channel"], OTHER_MEDIA.get(int(kind), "")


def _of_other_medium(
    match: re.Match[str], value: float, unit: str | None, types: Mapping[str, str]
) -> Measured | None:
    quantity = types.get(match["channel"], "")
    if not quantity or match["code"] not in CODES_OF_OTHERS:
        return None
    several = list(types.values()).count(quantity) > 1 or quantity == "energy"
    return Measured(quantity, value, unit, match["channel"] if several else "")
