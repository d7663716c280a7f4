"""Durations and sizes have one form in every table."""

import re
from collections.abc import Iterator

import pytest

from gateway.config.bridges import bridge_kinds, load_kind
from gateway.config.configuration import Configuration
from gateway.settings.declaration import Check, Key, keys_of
from gateway.settings.quantities import (
    bytes_a_day,
    duration,
    milliseconds,
    seconds,
    size,
    size_from,
    spell_duration,
    spell_size,
)
from tests.support.table import table

MINUTE = seconds(1, 3_600)
REAL = duration(0.1, 3_600)
SHORT = milliseconds(0, 10_000)
SIZE = size(0, 1024**4)


@table(
    "check, value, meant",
    [
        (MINUTE, 30, 30),
        (MINUTE, "30s", 30),
        (MINUTE, "5m", 300),
        (MINUTE, "1h", 3_600),
        (MINUTE, "1.5m", 90),
        (MINUTE, "2000ms", 2),
        (seconds(), "0", 0),
        (seconds(), "7d", 604_800),
        (REAL, 0.5, 0.5),
        (REAL, 1, 1.0),
        (REAL, "500ms", 0.5),
        (REAL, "0.5s", 0.5),
        (REAL, "1m", 60.0),
        (SHORT, 200, 200),
        (SHORT, "200ms", 200),
        (SHORT, "0.5s", 500),
        (SHORT, "0", 0),
        (SIZE, 500, 500),
        (SIZE, "1B", 1),
        (SIZE, "500kB", 500_000),
        (SIZE, "20MB", 20_000_000),
        (SIZE, "1.5GB", 1_500_000_000),
        (SIZE, "256MiB", 256 * 1024**2),
        (SIZE, "0.5KiB", 512),
        (SIZE, "1TiB", 1024**4),
        (size_from(1), "2TB", 2_000_000_000_000),
        (size_from(1), 7, 7),
        (bytes_a_day, "200MB/day", 200_000_000),
        (bytes_a_day, 7, 7),
    ],
)
def test_a_number_and_a_text_are_one_form(check: Check[float], value: object, meant: float) -> None:
    assert check(value) == meant
    assert check(check.spell(meant).strip('"')) == meant


NO_QUANTITIES = ("", "20", "20 s", "-1s", "1e3s", "20S", "20s\n", "٣s", "1h30m", None, True, [1])
FRACTIONS = (0.5, "1500ms")


@table(
    "check, values, said",
    [
        (
            MINUTE,
            (*NO_QUANTITIES, *FRACTIONS, 0, "0", 3_601, "2h"),
            "a whole number from 1 to 3600",
        ),
        (MINUTE, ("x",), 'as seconds or a text such as "30s" or "5m"'),
        (REAL, (*NO_QUANTITIES, 0.01, "50ms", "2h", float("nan")), "a number from 0.1 to 3600"),
        (SHORT, (*NO_QUANTITIES, 0.5, -1, "11s"), "a whole number from 0 to 10000"),
        (SIZE, (*NO_QUANTITIES, 0.5, -1, "2TiB", "20mb"), "a whole number from 0 to 1099511627776"),
        (size_from(2), (*NO_QUANTITIES, 1, "1B"), 'at least 2 bytes, such as 2 or "256MiB"'),
        (
            bytes_a_day,
            (*NO_QUANTITIES, 0, "0MB/day", "20MB", "20MB/hour", "20MB/Day", "/day", "1MB/day/day"),
            "a size a day such as",
        ),
    ],
)
def test_what_is_allowed_is_said(
    check: Check[float], values: tuple[object, ...], said: str
) -> None:
    for value in values:
        with pytest.raises(ValueError, match=said):
            check(value)


@table(
    "spelled, text",
    [
        (spell_duration(0), '"0"'),
        (spell_duration(0.25), '"250ms"'),
        (spell_duration(90), '"90s"'),
        (spell_duration(86_400), '"1d"'),
        (spell_size(0), '"0B"'),
        (spell_size(1_001), '"1001B"'),
        (spell_size(1_000), '"1kB"'),
        (spell_size(4 * 1024**2), '"4MiB"'),
    ],
)
def test_what_it_means_is_spelled(spelled: str, text: str) -> None:
    assert spelled == text


def _keys(settings: type, place: str) -> Iterator[tuple[str, Key]]:
    for key in keys_of(settings):
        name = f"{place}{key.name}"
        if key.table is None:
            yield name, key
        else:
            yield from _keys(key.table, f"{name}.")


def _all_keys() -> Iterator[tuple[str, Key]]:
    yield from _keys(Configuration, "")
    for name, entry_point in bridge_kinds().items():
        yield from _keys(load_kind(entry_point).settings, f"{name}.")


QUANTITY = re.compile(r"[._](bytes|size|delay|timeout|interval|age|expiry|debounce)$")
"""What the name of a duration's or a size's key ends with."""


def test_every_key_in_seconds_or_bytes_has_the_one_form() -> None:
    checked = set()
    for name, key in _all_keys():
        types = {each.get("type") for each in key.check.schema.get("anyOf", ())}
        if QUANTITY.search(name):
            assert types in ({"number", "string"}, {"integer", "string"}), name
            checked.add(name)
    assert {
        "channel.inflight_timeout",
        "storage.commit_delay",
        "listener.maximum_packet_size",
    } < checked
