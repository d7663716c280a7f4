"""A time at which something is to be done, which is mostly put off before it comes."""

import math
from collections.abc import Callable


class WakeUp:
    """Whoever waits for sockets calls `ring` at `at`, a second of the loop's clock.

    It is set and put off by assignment, many times between two waits, where a timer of the loop's
    would cost more than all else. It is infinite while nothing is to be done.
    """

    __slots__ = ("at", "ring")

    def __init__(self) -> None:
        self.at = math.inf
        self.ring: Callable[[], None] = lambda: None
