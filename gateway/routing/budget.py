"""What evaluating `$where` costs, and a word to the log about what costs too much."""

import logging
from collections.abc import Callable
from typing import Protocol
from weakref import ReferenceType, WeakSet, ref

from gateway.routing.where.evaluation.message import Message
from gateway.routing.where.figures import Figures

logger = logging.getLogger(__name__)

SAMPLED = 64
"""Of so many evaluations of an expression one is measured, beginning with the first."""

PROMOTED = 4_096
"""Evaluations after which an expression is worth the millisecond that its own function costs."""

MAXIMUM_PROMOTED = 1_000
"""Expressions in use that have a function of their own, of some 10 kB; further ones have none."""

SLOW_NANOSECONDS = 1_000_000
"""Longer than this no evaluation should take: a thousand times what an ordinary one does."""

WARNING_NANOSECONDS = 60 * 1_000_000_000
"""Between two warnings; those left out are counted in the next one."""

SHOWN_CODE_POINTS = 200
"""Longest piece of an expression that a warning or `$SYS` repeats."""


class Evaluable(Protocol):
    """A compiled expression of a subscription or a rule."""

    text: str
    figures: Figures

    @property
    def evaluate(self) -> Callable[[Message], bool | None]:
        """Gives the result, None for NULL; the same however often it is asked."""
        ...

    def promote(self) -> bool:
        """Make `evaluate` sooner; return False where that cannot be done."""
        ...


class Budget:
    """Evaluates filters for whoever routes messages, and counts and measures that.

    `evaluated`, `passed` and `null` are of all subscription filters since the start; each
    expression has the same of its own in `figures`. `slow` counts the measurements, of rules, too,
    beyond SLOW_NANOSECONDS. `timer` gives nanoseconds since some fixed moment; without one nothing
    is measured.
    """

    __slots__ = (
        "_promoted",
        "_slowest",
        "_timer",
        "_unsaid",
        "_warned",
        "evaluated",
        "null",
        "passed",
        "slow",
    )

    def __init__(self, timer: Callable[[], int] | None = None) -> None:
        self.evaluated = 0
        self.passed = 0
        self.null = 0
        self.slow = 0
        self._timer = timer
        self._promoted: WeakSet[Evaluable] = WeakSet()
        self._slowest: ReferenceType[Evaluable] | None = None
        self._warned: int | None = None  # when, by the timer
        self._unsaid = 0

    @property
    def filtered(self) -> int:
        """How many of the evaluations were FALSE or NULL."""
        return self.evaluated - self.passed

    @property
    def slowest(self) -> Evaluable | None:
        """The expression in use that takes longest in the mean of its measured evaluations."""
        return None if self._slowest is None else self._slowest()

    def passes(self, where: Evaluable, message: Message, client_id: str) -> bool:
        """Say whether the filter of this client's subscription is TRUE for the message."""
        result = where.evaluate(message)
        figures = where.figures
        if not figures.evaluated % SAMPLED:
            self.look(where, message, f"client {client_id!r}")
        figures.evaluated += 1
        self.evaluated += 1
        if result:
            figures.passed += 1
            self.passed += 1
            return True
        if result is None:
            figures.null += 1
            self.null += 1
        return False

    def count_passed(self, where: Evaluable) -> None:
        """Count an expression that an index has found to be TRUE."""
        figures = where.figures
        figures.evaluated += 1
        figures.passed += 1
        self.evaluated += 1
        self.passed += 1

    @property
    def promoted(self) -> int:
        """How many of the expressions in use have a function of their own."""
        return len(self._promoted)

    def look(self, where: Evaluable, message: Message, owner: str) -> None:
        """Promote an expression that is evaluated often, and measure an evaluation.

        It was evaluated for this message before: what the message is decoded to is kept with it
        and was paid for then. `owner` stands in the warning about one that takes too long.
        """
        often = where.figures.evaluated == PROMOTED
        if often and self.promoted < MAXIMUM_PROMOTED and where.promote():
            self._promoted.add(where)
        if self._timer is not None:
            self._measure(where, message, owner, self._timer)

    def _measure(
        self, where: Evaluable, message: Message, owner: str, timer: Callable[[], int]
    ) -> None:
        took = _time(timer, where, message)
        if took > SLOW_NANOSECONDS:  # or was the processor elsewhere meanwhile?
            took = min(took, _time(timer, where, message))
        figures = where.figures
        figures.samples += 1
        figures.nanoseconds += took
        slowest = self.slowest
        if slowest is None or figures.mean > slowest.figures.mean:
            self._slowest = ref(where)
        if took > SLOW_NANOSECONDS:
            self.slow += 1
            self._warn(where, took, owner, timer())

    def _warn(self, where: Evaluable, took: int, owner: str, now: int) -> None:
        if self._warned is not None and now - self._warned < WARNING_NANOSECONDS:
            self._unsaid += 1
            return
        logger.warning(
            "%s: an evaluation took %.1f ms, %.1f ms are allowed (%d more since last said): %s",
            owner,
            took / 1_000_000,
            SLOW_NANOSECONDS / 1_000_000,
            self._unsaid,
            shown(where.text),
        )
        self._warned, self._unsaid = now, 0


def _time(timer: Callable[[], int], where: Evaluable, message: Message) -> int:
    begin = timer()
    where.evaluate(message)
    return timer() - begin


def shown(text: str) -> str:
    """Return an expression as a warning or `$SYS` repeats it: in one line, cut if it is long."""
    line = " ".join(text[: SHOWN_CODE_POINTS + 1].split())
    return line if len(text) <= SHOWN_CODE_POINTS else f"{line[:SHOWN_CODE_POINTS]}..."
