"""What a TOML file says of payloads: which are readings, and what is expected of them."""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gateway.bridges.readings.registry import Kind
from gateway.bridges.topics.mapping import MappingSettings
from gateway.config.reader import Reader
from gateway.settings.checks import number, one_of, text
from gateway.settings.declaration import key, tables
from gateway.settings.quantities import duration
from pipeline.errors import PipelineError
from pipeline.records.declared import MARK, QUARANTINE, Declared

TABLES_MAX = 1_000
"""Mappings, and expectations, of one file."""
LIMIT = 1e300
STUCK_MAX = 31 * 86_400
"""Seconds that a value may be the same at most: so far back are rows read to know that."""
EVERY_MAX = 86_400
"""Seconds: silences are looked for within days."""
KINDS = tuple(kind.value for kind in Kind if kind is not Kind.STATE)
"""Kinds that numbers may have; texts and booleans are states, or events."""


@dataclass(frozen=True, kw_only=True)
class FleetMapping(MappingSettings):
    """Which messages are readings: the keys of a gateway's `[[topics]]`, and of which gateway."""

    gateway: str | None = key(text, "gateway whose messages are read, by default all", None)


@dataclass(frozen=True, kw_only=True)
class Expectation:
    """What readings of a quantity must be, and what happens to others."""

    quantity: str = key(text, "quantity of the readings")
    gateway: str | None = key(text, "gateway of the readings, by default all", None)
    node: str | None = key(text, "node of the readings, by default all", None)
    instance: str | None = key(text, "instance of the readings, by default all", None)
    unit: str | None = key(text, "unit, or one that can be converted into it", None)
    minimum: float | None = key(number(-LIMIT, LIMIT), "lowest value, in `unit`", None)
    maximum: float | None = key(number(-LIMIT, LIMIT), "highest value, in `unit`", None)
    rate: float | None = key(
        number(0, LIMIT), "largest change a minute since the reading before, in `unit`", None
    )
    stuck: float | None = key(
        duration(1, STUCK_MAX), "how long readings may all have the same value", None
    )
    every: float | None = key(
        duration(1, EVERY_MAX),
        "longest time between two readings of a day, as a rule's heartbeat",
        None,
    )
    action: str = key(
        one_of(MARK, QUARANTINE),
        "`mark` lists a reading, `quarantine` also leaves it out of the gold tables",
        MARK,
    )

    def mistakes(self, given: frozenset[str]) -> Iterator[tuple[str, object, str]]:
        """Yield what cannot be meant together."""
        if not given & {"unit", "minimum", "maximum", "rate", "stuck", "every"}:
            wanted = "unit, minimum, maximum, rate, stuck or every beside it"
            yield "quantity", self.quantity, wanted
        low, high = self.minimum, self.maximum
        if low is not None and high is not None and low > high:
            yield "minimum", low, f"at most the maximum, {high}"


def kinds(value: object) -> tuple[tuple[str, str], ...]:
    """Accept a table of quantities with their kinds; return pairs of them."""
    allowed = f"a table of quantities with one of {', '.join(KINDS)} each"
    if not isinstance(value, dict) or not set(map(str, value.values())) <= set(KINDS):
        raise ValueError(allowed)
    return tuple(value.items())


@dataclass(frozen=True, kw_only=True)
class _File:
    """The tables of a file."""

    mapping: tuple[FleetMapping, ...] = tables(FleetMapping, name="mapping")
    expectation: tuple[Expectation, ...] = tables(Expectation, name="expectation")
    kinds: tuple[tuple[str, str], ...] = key(kinds, "kinds of quantities", ())


def read_declared(file: Path) -> Declared:
    """Return what a file declares; raises PipelineError with file, key and what is allowed."""
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise PipelineError(f"{file} is not TOML: {error}") from None
    reader = Reader(str(file))
    _check_mappings(reader, content.get("mapping"))
    found = _File() if reader.mistakes else reader.read(_File, content)
    if reader.mistakes:
        raise PipelineError("; ".join(map(str, reader.mistakes)))
    return Declared(found.mapping, found.expectation, found.kinds)


def _check_mappings(reader: Reader, mappings: object) -> None:
    """Note the mistakes of mappings, also keys that need or exclude each other."""
    for place, table in enumerate(mappings if isinstance(mappings, list) else ()):
        try:
            reader.read(FleetMapping, table, f"mapping[{place}]")
        except ValueError as error:
            if not reader.mistakes:
                reader.mistake(f"mapping[{place}]", None, str(error))
