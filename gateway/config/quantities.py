"""Checks of durations and sizes with their units, such as "90s", "20MB" and "200MB/day"."""

import re

from gateway.config.described import Check, check

DURATION = re.compile(r"([0-9]{1,6})([smhd])|0", re.ASCII)
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
SIZE = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,3})?)(B|kB|MB|GB|TB|KiB|MiB|GiB|TiB)", re.ASCII)
UNITS = {
    "B": 1,
    **{unit + "B": 1000**power for power, unit in enumerate("kMGT", 1)},
    **{unit + "iB": 1024**power for power, unit in enumerate("KMGT", 1)},
}

A_DURATION = {"type": "string", "pattern": f"^({DURATION.pattern})$"}
A_SIZE = {"type": "string", "pattern": f"^{SIZE.pattern}$"}


def spell_duration(seconds: int) -> str:
    """Return the shortest text that says so many seconds."""
    for unit in "dhm":
        if seconds and seconds % SECONDS[unit] == 0:
            return f'"{seconds // SECONDS[unit]}{unit}"'
    return f'"{seconds}s"' if seconds else '"0"'


def spell_size(count: int) -> str:
    """Return the shortest text that says so many bytes."""
    for unit in ("TiB", "GiB", "MiB", "KiB"):
        if count % UNITS[unit] == 0:
            return f'"{count // UNITS[unit]}{unit}"'
    return f'"{count}B"'


@check('a time such as `"90s"`, `"2h"`, `"7d"`', spell=spell_duration, **A_DURATION)
def duration(value: object) -> int:
    """Return the seconds that a text such as "90s", "30m", "2h" or "7d" says; "0" is none."""
    match = DURATION.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError('a text such as "90s", "30m", "2h" or "7d", or "0"')
    return int(match[1] or 0) * SECONDS.get(match[2], 0)


def duration_from(lowest: int) -> Check[int]:
    """Return a check for durations of at least `lowest` seconds."""

    @check(f'a time such as `"90s"`, from `"{lowest}s"`', spell=spell_duration, **A_DURATION)
    def duration_at_least(value: object) -> int:
        seconds = duration(value)
        if seconds < lowest:
            raise ValueError(f'at least {lowest} s, as a text such as "90s" or "30m"')
        return seconds

    return duration_at_least


@check('a size such as `"20MB"`, `"1.5GB"`, `"256MiB"`', spell=spell_size, **A_SIZE)
def size(value: object) -> int:
    """Return the bytes that a text such as "500kB", "20MB", "1.5GB" or "256MiB" says."""
    from decimal import Decimal

    match = SIZE.fullmatch(value) if isinstance(value, str) else None
    count = 0 if match is None else int(Decimal(match[1]) * UNITS[match[2]])
    if not count:
        raise ValueError('a size above 0 such as "500kB", "20MB", "1.5GB" or "256MiB"')
    return count


def size_from(lowest: int) -> Check[int]:
    """Return a check for sizes of at least `lowest` bytes, as a text or a whole number."""

    @check(
        f'a size such as `"256MiB"`, or bytes, from {lowest}',
        spell=spell_size,
        anyOf=[A_SIZE, {"type": "integer", "minimum": lowest}],
    )
    def size_at_least(value: object) -> int:
        whole = isinstance(value, int) and not isinstance(value, bool)
        count = value if whole else size(value)
        if not isinstance(count, int) or count < lowest:
            raise ValueError(f'at least {lowest} bytes, such as {lowest} or "256MiB"')
        return count

    return size_at_least


@check(
    'a size a day such as `"200MB/day"`',
    spell=lambda count: spell_size(count)[:-1] + '/day"',
    type="string",
    pattern=f"^{SIZE.pattern}/day$",
)
def bytes_a_day(value: object) -> int:
    """Return the bytes that a text such as "200MB/day" says."""
    allowed = 'a size a day such as "200MB/day" or "1.5GB/day"'
    if not isinstance(value, str) or not value.endswith("/day"):
        raise ValueError(allowed)
    try:
        return size(value.removesuffix("/day"))
    except ValueError as error:
        raise ValueError(allowed) from error
