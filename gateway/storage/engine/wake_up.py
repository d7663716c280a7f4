"""A time at which something must be done, which is usually postponed before it is reached."""

import math
from collections.abc import Callable


class WakeUp:
    """The socket selector calls `ring` at `at`, a second of the loop's clock.

    It is set and postponed by assignment, many times between two waits; a timer of the loop would
    cost more than all else. It is infinite while nothing is due.
    """

    __slots__ = ("at", "ring")

    def __init__(self) -> None:
        self.at = math.inf
        self.ring: Callable[[], None] = lambda: None
