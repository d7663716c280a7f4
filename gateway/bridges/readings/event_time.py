"""When a reading was taken: what its node says, unless the node's clock cannot be right."""

EARLIEST = 1_704_067_200_000
"""Milliseconds at the start of 2024: a clock that says less was never set."""

AHEAD_MAX = 86_400_000
"""Milliseconds by which a node's clock may be ahead of the gateway's."""

SECONDS_MAX = 100_000_000_000
"""A time below this is in seconds: as milliseconds it would be before 1973."""


def milliseconds(time: float) -> int:
    """Return a time since 1970 in milliseconds, which may be given in seconds."""
    return int(time * 1000 if abs(time) < SECONDS_MAX else time)


def is_good(time: int, now: int) -> bool:
    """Return whether a node's clock that says `time` can be right; `now` is the gateway's.

    While the gateway's own clock was never set, a later one is believed.
    """
    if time < EARLIEST:
        return now < EARLIEST
    return now < EARLIEST or time <= now + AHEAD_MAX
