"""Delivery policies: messages are sent at the end of each turn, held, or conflated."""

import re
from functools import lru_cache

COUNT = 5
"""Messages that are held until they are sent together, by default."""

SIZE = 64 * 1024
"""Bytes of these."""

DELAY = 200
"""Milliseconds for which a message is held, by default."""

MAXIMUM_COUNT = 1_000
MAXIMUM_SIZE = 256 * 1024  # far below what may wait for a slow reader
MAXIMUM_DELAY = 10_000

FLUSH_INTERVAL = 0.1
"""The longest step between two moments at which held messages are sent, in seconds."""

MINIMUM_EVERY = 10
"""The least `$every` in milliseconds; timers are no more exact."""

MAXIMUM_EVERY = 3_600_000
"""An hour, for which the newest message may be held in memory."""

KNOWN = 64
"""Texts whose policies are cached."""

_BOUNDS = {"n": MAXIMUM_COUNT, "ms": MAXIMUM_DELAY, "bytes": MAXIMUM_SIZE}
_TERM = re.compile(r"(n|ms|bytes)=([0-9]{1,6})")
_NUMBER = re.compile(r"[0-9]{1,9}")


class DeliveryPolicy:
    """How long a message may be held so that others are sent with it.

    Held messages are sent once they are `count`, or of `size` bytes, or one of them has been held
    for `delay` seconds; a delay of 0 holds nothing. Sending times are multiples of `step` seconds,
    so that sessions share a timer, and are rather early than late.

    Of each topic at most the newest message is sent in `every` seconds, each if that is 0.0. If it
    is not `own`, the receiver's class decides how long messages are held.
    """

    __slots__ = ("count", "delay", "every", "holds", "own", "size", "step")

    def __init__(
        self,
        count: int,
        size: int,
        delay: float,
        interval: float = FLUSH_INTERVAL,
        *,
        every: float = 0.0,
        own: bool = True,
    ) -> None:
        self.count = count
        self.size = size
        self.delay = delay
        self.every = every
        self.own = own
        self.step = min(interval, delay / 4)
        self.holds = delay > 0 and count > 1

    def shorter(self, other: "DeliveryPolicy") -> "DeliveryPolicy":
        """Return the policy that holds messages no longer than either of the two."""
        every = min(self.every, other.every)
        if not (self.own and other.own):
            return (other if other.own else self).with_every(every)
        count, size = min(self.count, other.count), min(self.size, other.size)
        delay, step = min(self.delay, other.delay), max(self.step, other.step)
        return DeliveryPolicy(count, size, delay, step, every=every)

    def with_every(self, every: float) -> "DeliveryPolicy":
        """Return the policy with another `every`."""
        return DeliveryPolicy(
            self.count, self.size, self.delay, self.step, every=every, own=self.own
        )


EACH = DeliveryPolicy(1, 1, 0.0)
"""Output of a turn is sent at its end."""

OF_CLASS = DeliveryPolicy(1, 1, 0.0, own=False)
"""The policy of a subscription that requests none."""


class PolicyError(ValueError):
    """An invalid `$deliver` or `$every` property; the text says what is allowed."""


@lru_cache(maxsize=KNOWN)
def read_policy(deliver: str | None, every: str | None = None) -> DeliveryPolicy | None:
    """Return the policy that a subscription requests, None without one; or raise PolicyError.

    `deliver` is `each`, or up to three terms such as `n=10,ms=50,bytes=4096`; `every` is
    milliseconds.
    """
    policy = None if deliver is None else _read_deliver(deliver)
    if every is None:
        return policy
    milliseconds = int(every) if _NUMBER.fullmatch(every) else 0
    if not MINIMUM_EVERY <= milliseconds <= MAXIMUM_EVERY:
        raise PolicyError(
            f"$every: {every[:40]!r}: it is a whole number of milliseconds, {MINIMUM_EVERY} to "
            f"{MAXIMUM_EVERY}"
        )
    return (policy or OF_CLASS).with_every(milliseconds / 1000)


def _read_deliver(text: str) -> DeliveryPolicy:
    if text == "each":
        return EACH
    found: dict[str, int] = {}
    for term in text.split(","):
        match = _TERM.fullmatch(term)
        if match is None or match[1] in found:
            raise PolicyError(
                f"$deliver: {term[:40]!r}: allowed are each, or n=, ms= and bytes=, each once"
            )
        name, value = match[1], int(match[2])
        if not 1 <= value <= _BOUNDS[name]:
            raise PolicyError(f"$deliver: {term!r}: {name} is 1 to {_BOUNDS[name]}")
        found[name] = value
    delay = found.get("ms", DELAY) / 1000
    return DeliveryPolicy(found.get("n", COUNT), found.get("bytes", SIZE), delay)
