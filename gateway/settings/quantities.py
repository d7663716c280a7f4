"""Checks of durations and sizes, which have one form in every table: `30`, `"30s"`, `"64KiB"`.

A number without a unit is in the key's own: seconds, bytes, or milliseconds where the key says so.
"""

import re

from gateway.settings.declaration import Check, check

DURATION = re.compile(r"([0-9]{1,10}(?:\.[0-9]{1,3})?)(ms|s|m|h|d)|0", re.ASCII)
MILLISECONDS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
SIZE = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,3})?)(B|kB|MB|GB|TB|KiB|MiB|GiB|TiB)", re.ASCII)
UNITS: dict[str, int] = {
    "B": 1,
    **{unit + "B": 1000**power for power, unit in enumerate("kMGT", 1)},
    **{unit + "iB": 1024**power for power, unit in enumerate("KMGT", 1)},
}

LONGEST_DAYS = 999_999
LONGEST = LONGEST_DAYS * 86_400
"""Seconds of a duration whose key has no upper bound of its own."""

A_DURATION = {"type": "string", "pattern": f"^({DURATION.pattern})$"}
A_SIZE = {"type": "string", "pattern": f"^{SIZE.pattern}$"}
A_RATE = {"type": "string", "pattern": f"^{SIZE.pattern}/day$"}


def spell_duration(seconds: float) -> str:
    """Return the shortest text for so many seconds."""
    milliseconds = round(seconds * 1000)
    for unit in ("d", "h", "m", "s"):
        if milliseconds and milliseconds % MILLISECONDS[unit] == 0:
            return f'"{milliseconds // MILLISECONDS[unit]}{unit}"'
    return f'"{milliseconds}ms"' if milliseconds else '"0"'


def spell_size(count: int) -> str:
    """Return the shortest text for so many bytes."""
    for unit in sorted(UNITS, key=UNITS.__getitem__, reverse=True):
        if count and count % UNITS[unit] == 0:
            return f'"{count // UNITS[unit]}{unit}"'
    return f'"{count}B"'


def _range(lowest: str, highest: str) -> str:
    """Return what is allowed, of two values as TOML writes them."""
    return f"{lowest} to {highest}".replace('"', "")


def duration(lowest: float, highest: float) -> Check[float]:
    """Return a check for durations between so many seconds, with their fractions."""
    allowed = f'a number from {lowest} to {highest}, as seconds or a text such as "30s" or "500ms"'

    @check(
        _range(spell_duration(lowest), spell_duration(highest)),
        spell=spell_duration,
        anyOf=[{"type": "number", "minimum": lowest, "maximum": highest}, A_DURATION],
    )
    def between(value: object) -> float:
        real = isinstance(value, int | float) and not isinstance(value, bool)
        seconds = value if real else _milliseconds(value) / 1000
        if not isinstance(seconds, int | float) or not lowest <= seconds <= highest:
            raise ValueError(allowed)
        return float(seconds)

    return between


def seconds(lowest: int = 0, highest: int = LONGEST) -> Check[int]:
    """Return a check for durations of whole seconds between the two, both included."""
    return _whole(lowest, highest, "seconds", '"30s" or "5m"', 1000)


def milliseconds(lowest: int, highest: int) -> Check[int]:
    """Return a check for durations between so many milliseconds, the unit of a plain number."""
    return _whole(lowest, highest, "milliseconds", '"200ms" or "1s"', 1)


def _whole(lowest: int, highest: int, unit: str, examples: str, factor: int) -> Check[int]:
    """Return a check for durations that are whole numbers of a unit of `factor` milliseconds."""
    allowed = f"a whole number from {lowest} to {highest}, as {unit} or a text such as {examples}"
    if highest == LONGEST:
        allowed = (
            f"at least {lowest} s and at most {LONGEST_DAYS} days, as seconds or a text such as"
            ' "90s", "30m", "2h" or "7d"'
        )

    def spelled(count: float) -> str:
        return spell_duration(count * factor / 1000)

    @check(
        "duration" if highest == LONGEST else _range(spelled(lowest), spelled(highest)),
        spell=spelled,
        anyOf=[{"type": "integer", "minimum": lowest, "maximum": highest}, A_DURATION],
    )
    def between(value: object) -> int:
        whole = isinstance(value, int) and not isinstance(value, bool)
        count = value if whole else _milliseconds(value) / factor
        if not isinstance(count, int | float) or count != int(count):
            raise ValueError(allowed)
        if not lowest <= count <= highest:
            raise ValueError(allowed)
        return int(count)

    return between


def _milliseconds(value: object) -> float:
    """Return the value of a text such as "90s" or "500ms"; negative if it is invalid."""
    match = DURATION.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return -1.0
    whole, _, fraction = (match[1] or "0").partition(".")
    thousandths = int(whole) * 1000 + int(fraction.ljust(3, "0"))
    return thousandths * MILLISECONDS.get(match[2], 0) / 1000


def size(lowest: int, highest: int) -> Check[int]:
    """Return a check for sizes between so many bytes, both included."""
    allowed = (
        f'a whole number from {lowest} to {highest}, as bytes or a text such as "64KiB" or "20MB"'
    )

    @check(
        _range(spell_size(lowest), spell_size(highest)),
        spell=spell_size,
        anyOf=[{"type": "integer", "minimum": lowest, "maximum": highest}, A_SIZE],
    )
    def between(value: object) -> int:
        count = _bytes(value)
        if count is None or not lowest <= count <= highest:
            raise ValueError(allowed)
        return count

    return between


def size_from(lowest: int) -> Check[int]:
    """Return a check for sizes of at least `lowest` bytes."""

    @check(
        f"from {spell_size(lowest)}".replace('"', ""),
        spell=spell_size,
        anyOf=[{"type": "integer", "minimum": lowest}, A_SIZE],
    )
    def at_least(value: object) -> int:
        count = _bytes(value)
        if count is None or count < lowest:
            raise ValueError(f'at least {lowest} bytes, such as {lowest} or "256MiB"')
        return count

    return at_least


def _bytes(value: object) -> int | None:
    """Return the bytes of a number or a text such as "1.5GB", None for anything else."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    match = SIZE.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return None
    whole, _, fraction = match[1].partition(".")
    return (int(whole) * 1000 + int(fraction.ljust(3, "0"))) * UNITS[match[2]] // 1000


@check(
    'size such as `"200MB/day"`',
    spell=lambda count: spell_size(count)[:-1] + '/day"',
    anyOf=[{"type": "integer", "minimum": 1}, A_RATE],
)
def bytes_a_day(value: object) -> int:
    """Return the bytes of a number or a text such as "200MB/day"."""
    text = value.removesuffix("/day") if isinstance(value, str) else value
    count = None if isinstance(value, str) and text == value else _bytes(text)
    if not count or count < 1:
        raise ValueError('a size a day such as "200MB/day" or "1.5GB/day"')
    return count
