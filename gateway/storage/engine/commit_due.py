"""When the batch that gathers now is to be closed for its commit."""

import asyncio
import math


class CommitDue:
    """The earliest of the times by which somebody wants the commit to begin.

    `at` is a second of the loop's clock: 0.0 for at once, infinite while nobody wants anything, or
    only what counts from the end of a turn that has not ended. `wanted` is True once somebody has
    asked for a commit.
    """

    __slots__ = ("_after_turn", "_within", "at", "wanted")

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Begin with a new batch, of which nobody has wanted anything."""
        self.wanted = False
        self.at = math.inf
        self._within = math.inf  # the shortest delay that was asked for
        self._after_turn = math.inf  # the same, as far as it counts from the turn's end

    @property
    def passed(self) -> bool:
        """True when the commit is not to be put off any more."""
        return not self.at or self.at <= asyncio.get_running_loop().time()

    def schedule(self, within: float, commit_delay: float, stretch: float) -> None:
        """Have it begin at most `within` seconds from now (`Writer.schedule_commit`)."""
        if within >= self._within:
            return  # asked for earlier, and for no longer: that is due before
        self._within = within
        self.wanted = True
        if within <= 0.0:
            self.at = 0.0
        elif within <= commit_delay:
            self._after_turn = within
        else:
            within = max(commit_delay, within * stretch)
            self.at = min(self.at, asyncio.get_running_loop().time() + within)

    def end_turn(self) -> None:
        """Let what counts from the end of the turn count from now."""
        if self._after_turn < math.inf:
            due = asyncio.get_running_loop().time() + self._after_turn
            self.at, self._after_turn = min(self.at, due), math.inf
