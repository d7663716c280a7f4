"""Estimates how long a card lasts at its present write rate."""

CYCLES = 500
"""Write cycles of each cell of a consumer's SD card (TLC): the low end of data sheets."""

AMPLIFICATION = 5
"""Bytes that a card writes internally for each byte it receives in small synced pieces. An
estimate: long sequential writes have 2, single pages 10 and more."""

DAYS_OF_A_YEAR = 365.25
LONG = 100 * DAYS_OF_A_YEAR
"""Maximum days shown; by then something else ends a card."""


def default_endurance(size: int) -> int:
    """Return the estimated endurance in bytes of a device of `size` bytes."""
    return size * CYCLES // AMPLIFICATION


def life_days(endurance: int, bytes_per_day: int) -> float:
    """Return the days until `endurance` bytes are written; infinity if nothing is written."""
    return endurance / bytes_per_day if bytes_per_day > 0 else float("inf")


def spell_days(days: float) -> str:
    """Return the days as text: `11 days`, `8 months`, `12 years`."""
    if days > LONG:
        return "more than 100 years"
    for unit, length in (("year", DAYS_OF_A_YEAR), ("month", DAYS_OF_A_YEAR / 12)):
        if days >= 2 * length:
            return f"{days / length:.0f} {unit}s"
    return f"{days:.0f} days"


def spell_bytes(count: float) -> str:
    """Return the bytes with a decimal unit of at most three digits before the point: `8.1 MB`."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000:
            return (
                f"{count:.0f} {unit}" if unit == "bytes" or count >= 100 else f"{count:.1f} {unit}"
            )
        count /= 1000
    return f"{count:.1f} TB"
