"""Times at which something must be done, which are usually postponed before they are reached."""

import asyncio
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


class CommitDue:
    """The earliest time by which a commit must begin.

    `at` is a second of the loop's clock: 0.0 for at once, infinite while nothing is scheduled, or
    only what counts from the end of the present turn. `wanted` is True once a commit was scheduled,
    and `commit_within` the shortest delay of those.
    """

    __slots__ = ("_after_turn", "at", "commit_within", "wanted")

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Begin with a new batch, for which nothing is scheduled."""
        self.wanted = False
        self.at = math.inf
        self.commit_within = math.inf
        self._after_turn = math.inf  # a delay that counts from the turn's end

    @property
    def passed(self) -> bool:
        """True when the commit is due."""
        return not self.at or self.at <= asyncio.get_running_loop().time()

    def schedule(self, commit_within: float, commit_delay: float, stretch: float) -> None:
        """Have it begin at most `commit_within` seconds from now (`Writer.schedule_commit`)."""
        if commit_within >= self.commit_within:
            return  # an earlier call with a shorter delay is due before
        self.commit_within = commit_within
        self.wanted = True
        if commit_within <= 0.0:
            self.at = 0.0
        elif commit_within <= commit_delay:
            self._after_turn = commit_within
        else:
            commit_within = max(commit_delay, commit_within * stretch)
            self.at = min(self.at, asyncio.get_running_loop().time() + commit_within)

    def end_turn(self) -> None:
        """Start the delay that counts from the end of the turn."""
        if self._after_turn < math.inf:
            due = asyncio.get_running_loop().time() + self._after_turn
            self.at, self._after_turn = min(self.at, due), math.inf
