"""The delivery policies: what is sent leaves at the end of each turn, or waits for more."""

import re
from functools import lru_cache

COUNT = 5
"""Messages that are held until they leave together, where nothing says otherwise."""

SIZE = 64 * 1024
"""Bytes of these."""

DELAY = 200
"""Milliseconds for which a message is held, where nothing says otherwise."""

MAXIMUM_COUNT = 1_000
MAXIMUM_SIZE = 256 * 1024  # far below what may wait for a slow reader
MAXIMUM_DELAY = 10_000

FLUSH_INTERVAL = 0.1
"""Seconds between two moments at which held messages leave, at most."""

KNOWN = 64
"""Texts whose policies are shared by all who ask for them."""

_BOUNDS = {"n": MAXIMUM_COUNT, "ms": MAXIMUM_DELAY, "bytes": MAXIMUM_SIZE}
_TERM = re.compile(r"(n|ms|bytes)=([0-9]{1,6})")


class DeliveryPolicy:
    """How long a message may be held so that others leave with it.

    Held messages leave once they are `count`, or of `size` bytes, or one of them has been held for
    `delay` seconds; a delay of 0 holds nothing. They leave in steps of `step` seconds, so that
    sessions share a timer, and rather early than late.
    """

    __slots__ = ("count", "delay", "holds", "size", "step")

    def __init__(
        self, count: int, size: int, delay: float, interval: float = FLUSH_INTERVAL
    ) -> None:
        self.count = count
        self.size = size
        self.delay = delay
        self.step = min(interval, delay / 4)
        self.holds = delay > 0 and count > 1

    def shorter(self, other: "DeliveryPolicy") -> "DeliveryPolicy":
        """Return the policy that holds nothing for longer than either of the two does."""
        count, size = min(self.count, other.count), min(self.size, other.size)
        return DeliveryPolicy(count, size, min(self.delay, other.delay), max(self.step, other.step))


EACH = DeliveryPolicy(1, 1, 0.0)
"""What is sent in a turn leaves at its end."""


class PolicyError(ValueError):
    """A `$deliver` property that cannot be read, with the term and what is allowed."""


@lru_cache(maxsize=KNOWN)
def read_policy(text: str | None) -> DeliveryPolicy | None:
    """Return what a `$deliver` property asks for, None if there is none; or raise PolicyError.

    It is `each`, or up to three terms such as `n=10,ms=50,bytes=4096`.
    """
    if text is None:
        return None
    if text == "each":
        return EACH
    found: dict[str, int] = {}
    for term in text.split(","):
        match = _TERM.fullmatch(term)
        if match is None or match[1] in found:
            raise PolicyError(f"{term[:40]!r}: allowed are each, or n=, ms= and bytes=, each once")
        name, value = match[1], int(match[2])
        if not 1 <= value <= _BOUNDS[name]:
            raise PolicyError(f"{term!r}: {name} is 1 to {_BOUNDS[name]}")
        found[name] = value
    delay = found.get("ms", DELAY) / 1000
    return DeliveryPolicy(found.get("n", COUNT), found.get("bytes", SIZE), delay)
