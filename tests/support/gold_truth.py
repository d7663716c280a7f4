"""Days by local time and unexpected readings of a made-up fleet, by plain Python over the truth.

It knows the sensors of `tidegate-pipeline simulate` and imports nothing of the pipeline.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import date, datetime, timedelta
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

DAY = 86_400_000
ZONES = ("Europe/Berlin", "America/New_York", "Asia/Kolkata")
"""The zones of the first gateways; the others use UTC."""
HOLDS = {"event": 0, "sample": DAY, "total": 31 * DAY, "state": 31 * DAY}
LOWEST, HIGHEST, RATE, STUCK = 1.0, 24.0, 0.1, 7_200
DECLARED = f"""
[[expectation]]
quantity = "temperature"
unit = "°C"
minimum = {LOWEST}
maximum = {HIGHEST}
rate = {RATE}

[[expectation]]
quantity = "door"
stuck = {STUCK}
"""

Row = dict[str, Any]
Sensor = tuple[str, str, str, str | None]
"""Gateway, node, quantity and instance."""


class Found(NamedTuple):
    """What is unexpected: gateway, epoch, number and expectation."""

    gateway: str
    epoch: str
    seq: int
    expectation: str


def assets() -> str:
    """Return a file of assets that gives the first gateways their zones."""
    tables = (f'[gateway.g{n:06d}]\ntime_zone = "{zone}"\n' for n, zone in enumerate(ZONES))
    return "\n".join(tables)


def by_sensor(silver: Iterable[Row]) -> dict[Sensor, list[Row]]:
    """Return the readings of each sensor in their order."""
    found: dict[Sensor, list[Row]] = defaultdict(list)
    for row in silver:
        if row["node"] is not None:
            names = row["gateway_id"], row["node"], row["quantity"], row["instance"]
            found[names].append(row)
    for rows in found.values():
        rows.sort(key=lambda row: (row["ms"], row["epoch"], row["seq"]))
    return found


def unexpected(sensors: dict[Sensor, list[Row]]) -> set[Found]:
    """Return what is not as DECLARED says."""
    found = set()
    for (gateway, _, quantity, _), rows in sensors.items():
        judge = {"temperature": _temperatures, "door": _doors}.get(quantity)
        for row, name in judge([row for row in rows if _good(row)]) if judge else ():
            found.add(Found(gateway, row["epoch"], row["seq"], name))
    return found


def _temperatures(rows: list[Row]) -> Iterator[tuple[Row, str]]:
    before: tuple[int, float] | None = None
    for row in rows:
        celsius = _in(row["value"], row["unit"], "C")
        if not LOWEST <= celsius <= HIGHEST:
            yield row, "range"
            continue
        if before is not None:
            passed = row["ms"] - before[0]
            if passed <= DAY and abs(celsius - before[1]) * 60_000 > RATE * passed:
                yield row, "rate"
        before = row["ms"], celsius


def _doors(rows: list[Row]) -> Iterator[tuple[Row, str]]:
    since = last = None
    for row in rows:
        if last is None or row["text"] != last["text"] or row["ms"] - last["ms"] > DAY:
            since = row["ms"]
        if since is not None and row["ms"] - since >= STUCK * 1000:
            yield row, "stuck"
        last = row


def _good(row: Row) -> bool:
    return not row["bad"] and (row["value"] is not None or row["text"] is not None)


def _in(value: float, unit: str | None, wanted: str | None) -> float:
    if unit == wanted or wanted is None or "F" not in f"{unit}{wanted}":
        return value
    return (value - 32) * 5 / 9 if unit == "°F" else value * 9 / 5 + 32


def _kind(row: Row) -> str:
    if row["quantity"] == "button":
        return "event"
    if row["text"] is not None:
        return "state"
    return "total" if row["quantity"] == "energy" else "sample"


class Days:
    """The local days of one sensor."""

    def __init__(self, zone: str, heard: int) -> None:
        self._zone = ZoneInfo(zone)
        self._heard = heard
        self._values: dict[date, list[float]] = defaultdict(list)
        self.days: dict[date, Row] = {}

    def add(self, rows: list[Row]) -> dict[date, Row]:
        """Return the figures of each day that the sensor's readings touch."""
        units: dict[date, str] = {}
        good = [row for row in rows if _good(row)]
        for row in good:
            if row["unit"] is not None:
                units[self._day(row["ms"])] = row["unit"]
        for row in rows:
            if not _good(row):
                self._of(self._day(row["ms"]))["bad"] += 1
        before: Row | None = None
        for place, row in enumerate(good):
            until = good[place + 1]["ms"] if place + 1 < len(good) else None
            self._share(row, until, units)
            if _kind(row) == "total":
                if before is not None and row["ms"] - before["ms"] <= HOLDS["total"]:
                    rise = row["value"] - before["value"]
                    of = self._of(self._day(row["ms"]))
                    of["increase"] += rise if rise >= 0 else row["value"]
                before = row
        for day, values in self._values.items():
            of = {"min": min(values), "max": max(values), "mean": sum(values) / len(values)}
            self.days[day] |= of
        return self.days

    def _share(self, row: Row, until: int | None, units: dict[date, str]) -> None:
        begin, kind = row["ms"], _kind(row)
        end = max(begin, self._heard + DAY) if until is None else until
        end = min(end, begin + HOLDS[kind])
        day = own = self._day(begin)
        while day == own or self._start(day) < end:
            of = self._of(day)
            lasted = max(
                0, min(end, self._start(day + timedelta(1))) - max(begin, self._start(day))
            )
            of["held_ms"] += lasted
            of["count"] += day == own
            if kind == "state":
                of["states"][row["text"]] = of["states"].get(row["text"], 0) + lasted
            if row["value"] is not None:
                value = _in(row["value"], row["unit"], units.get(day))
                of["integral"] += value * lasted / 3_600_000 if kind == "sample" else 0
                if day == own:
                    self._values[day].append(value)
            day += timedelta(1)

    def _of(self, day: date) -> Row:
        empty = {"count": 0, "bad": 0, "held_ms": 0, "integral": 0.0, "increase": 0.0}
        return self.days.setdefault(
            day, empty | {"states": {}, "min": None, "max": None, "mean": None}
        )

    def _day(self, ms: int) -> date:
        return datetime.fromtimestamp(ms / 1000, self._zone).date()

    def _start(self, day: date) -> int:
        return int(datetime(day.year, day.month, day.day, tzinfo=self._zone).timestamp()) * 1000


def local_days(silver: list[Row]) -> dict[tuple[Sensor, date], Row]:
    """Return the figures of each sensor and local day."""
    heard: dict[str, int] = {}
    for row in silver:
        heard[row["gateway_id"]] = max(heard.get(row["gateway_id"], 0), row["received"])
    zones = {f"g{n:06d}": zone for n, zone in enumerate(ZONES)}
    return {
        (sensor, day): of
        for sensor, rows in by_sensor(silver).items()
        for day, of in Days(zones.get(sensor[0], "UTC"), heard[sensor[0]]).add(rows).items()
    }
