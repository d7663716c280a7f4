"""What an LED says of a node: how long it is on of how long a period."""

HEARD, UNHEARD, FAILING, SAFE, IDENTIFYING = range(5)
"""All is well; nobody acknowledges; the sensors do not answer; safe mode; this board is meant."""

_PERIOD_MS = (4000, 1000, 1000, 2000, 250)
_LIT_MS = (50, 50, 500, 1900, 125)


def is_lit(state: int, now: int) -> bool:
    """Return whether the LED is on at `now`, in milliseconds."""
    return now % _PERIOD_MS[state] < _LIT_MS[state]
