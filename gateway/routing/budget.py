"""The cost of evaluating `$where`: its bounds, and warnings about filters that exceed them."""

import logging
import math
from collections.abc import Callable
from typing import Protocol
from weakref import ReferenceType, WeakSet, ref

from gateway.mqtt.message import ORDINARY, UNBOUNDED, Message, OverBudgetError
from gateway.routing import over_budget
from gateway.routing.over_budget import OverBudget, shown
from gateway.where.figures import Figures

logger = logging.getLogger(__name__)

QUICK = 50_000
"""Work of one evaluation before the others of the same message are evaluated."""

EVALUATION = 8_000_000
"""Work of one evaluation, and of all uplink rules for a message; beyond it the result is NULL."""

PIECE = 4_000_000
"""Work in one turn for a client's messages; the last evaluation may exceed it."""

PIECES = 50
"""Turns for one message; filters that need more are NULL for it."""

AT_ONCE = 20_000_000
"""Work for a message that cannot be postponed, as one of a sensor, or one that a channel
dispatches: some 10,000 ordinary evaluations. Filters that need more are NULL for it."""

TURN = 8_000_000
"""Work of evaluations that are not QUICK for all such messages of one turn."""

CLIENT = 100_000_000
"""Work that the filters of one client may cost in a second beside ordinary ones: a tenth of a
processor. Filters that need more are NULL until the second is over."""

FIXED = 2_000
"""Work of an evaluation whose cost is the same for every message. It is ORDINARY at most and mostly
less than this, so such evaluations are counted, not measured."""

PARSED = 30
"""Work of a byte of a payload, which the first filter parses."""

NOT_PASSED, PASSED, SKIPPED, CUT_SHORT = range(4)
"""Results of `Budget.evaluate`. A skipped filter is not evaluated, since no work is left; one that
was cut short must be evaluated again after all others."""

# Compiled, these are C names.
_ORDINARY = ORDINARY
_QUICK = QUICK
_EVALUATION = EVALUATION
_FIXED = FIXED
_NOT_PASSED, _PASSED, _SKIPPED, _CUT_SHORT = range(4)

SAMPLED = _SAMPLED = 64
"""One of this many evaluations of an expression is measured, beginning with the first."""

PROMOTED = 4_096
"""Evaluations after which generating a function for an expression pays its millisecond."""

MAXIMUM_PROMOTED = 1_000
"""Expressions in use with a generated function, of some 10 kB; further ones have none."""

SLOW_NANOSECONDS = 1_000_000
"""An evaluation that takes longer is slow: a thousand times an ordinary one."""

WARNING_NANOSECONDS = 60 * 1_000_000_000
"""Between two warnings; the next one has the number of those in between."""


class Evaluable(Protocol):
    """A compiled expression of a subscription or a rule."""

    text: str
    figures: Figures

    @property
    def evaluate(self) -> Callable[[Message], bool | None]:
        """Return the result, None for NULL; always the same for one message."""
        ...

    def promote(self) -> bool:
        """Make `evaluate` faster; return False if that is impossible."""
        ...


class Filter(Evaluable, Protocol):
    """The expression of a subscription."""

    steps: int
    fixed: bool


class Budget:
    """Evaluates filters during routing; counts, measures and bounds that.

    `evaluated`, `passed` and `null` are totals of all subscription filters since the start; each
    expression has its own in `figures`. `slow` counts measurements, also of rules, above
    SLOW_NANOSECONDS. `timer` returns nanoseconds since some fixed moment; without one nothing is
    measured.

    `now` is the monotonic second of the turn. Call `begin` before filters are evaluated for a
    message. If the message can continue in a later turn, set `pieces` to the turns it has had. Then
    `unfinished` becomes True if work is left, until the caller sets it to False. `over` counts and
    logs results that are NULL because they would have cost too much.
    """

    __slots__ = (
        "_clients",
        "_decided",
        "_evaluated",
        "_exhausted",
        "_promoted",
        "_promoted_at",
        "_second",
        "_slowest",
        "_stop",
        "_turn",
        "_turn_cost",
        "_unreported",
        "_warned",
        "now",
        "null",
        "over",
        "passed",
        "pieces",
        "slow",
        "timer",
        "unfinished",
    )

    def __init__(self, timer: Callable[[], int] | None = None) -> None:
        self._evaluated = 0
        self._decided = 0  # decided by an index, without an evaluation
        self.passed = 0
        self.null = 0
        self.slow = 0
        self.now = 0.0
        self.pieces = PIECES
        self.unfinished = False
        self.over = OverBudget()
        self.timer = timer
        self._promoted: WeakSet[Evaluable] = WeakSet()
        self._promoted_at = -math.inf
        self._slowest: ReferenceType[Evaluable] | None = None
        self._warned: int | None = None  # timer value of the last warning
        self._unreported = 0
        self._stop = UNBOUNDED  # number of evaluations at which the turn's work is used up
        self._turn = self._second = -math.inf
        self._turn_cost = 0  # work in this turn for messages that could not be postponed
        self._clients: dict[str, int] = {}  # work of this second by client
        self._exhausted: set[str] = set()  # clients that have used up this second's work

    @property
    def evaluated(self) -> int:
        """How many filters gave a result."""
        return self._evaluated + self._decided

    @property
    def filtered(self) -> int:
        """How many of the evaluations were FALSE or NULL."""
        return self.evaluated - self.passed

    @property
    def slowest(self) -> Evaluable | None:
        """The expression in use with the longest mean of its measured evaluations."""
        return None if self._slowest is None else self._slowest()

    @property
    def spent(self) -> bool:
        """Whether further filters must wait for a later turn; `unfinished` is True then."""
        if self.pieces < PIECES and self._evaluated >= self._stop:
            self.unfinished = True
        return self.unfinished

    def begin(self, payload_bytes: int = 0) -> None:
        """Begin with a message, or several of this many bytes together."""
        now = self.now
        if now != self._turn:
            self._turn, self._turn_cost = now, 0
            if not now - self._second < 1.0:
                self._second = now
                self._clients.clear()
                self._exhausted.clear()
        work = AT_ONCE
        if self.pieces < PIECES:
            work = PIECE if self.pieces else max(FIXED, PIECE - payload_bytes * PARSED)
        self._stop = self._evaluated + work // _FIXED

    def passes(self, where: Filter, message: Message, client_id: str) -> bool:
        """Return whether the filter of this client's subscription is TRUE for the message."""
        return self.evaluate(where, message, client_id) == _PASSED

    def evaluate(self, where: Filter, message: Message, client_id: str, quick: bool = False) -> int:
        """Evaluate the filter of this client's subscription, within the budget.

        Returns NOT_PASSED, PASSED or SKIPPED, or CUT_SHORT if it must be `quick` and is not.
        """
        if self._evaluated >= self._stop or (self._exhausted and client_id in self._exhausted):
            return self._skip(where, message, client_id)
        used = 0
        if where.fixed:
            result = where.evaluate(message)
        else:
            # a turn that has cost much allows only quick ones
            most = _QUICK if quick or self._turn_cost >= TURN else _EVALUATION
            remaining = message.work_left = most - where.steps
            if remaining < 0:  # its nodes exceed the work without any argument
                return self._exceeded(where, message, client_id, _ORDINARY, quick)
            try:
                result = where.evaluate(message)
            except OverBudgetError:
                return self._exceeded(where, message, client_id, most, quick)
            used = most - message.work_left
            self._stop -= used // _FIXED
            if used > _ORDINARY:
                self._charge(client_id, used)
        figures = where.figures
        count = figures.evaluated
        if not count % _SAMPLED:
            self.sample(where, message, f"client {client_id!r}", used)
        figures.evaluated = count + 1
        self._evaluated += 1
        if result:
            figures.passed += 1
            self.passed += 1
            return _PASSED
        if result is None:
            figures.null += 1
            self.null += 1
        return _NOT_PASSED

    def replayed(
        self, where: Filter, message: Message, client_id: str, most: int
    ) -> tuple[bool, int]:
        """Do the same for a retained message, with `most` work; return the result and the work.

        No share is checked: the caller evaluates few enough in a turn.
        """
        message.work_left = most - where.steps
        figures = where.figures
        try:
            result = where.evaluate(message) if message.work_left >= 0 else None
        except OverBudgetError:
            result = None
        if message.work_left < 0:
            bound = over_budget.MESSAGE if most < EVALUATION else over_budget.EVALUATION
            self._note(where, message, client_id, bound)
            return False, most
        used = most - message.work_left
        if not figures.evaluated % SAMPLED:
            self.sample(where, message, f"client {client_id!r}", used)
        figures.evaluated += 1
        self._evaluated += 1
        for each in (figures, self):
            each.passed += result is True
            each.null += result is None
        return bool(result), used

    def spend(self, work: int) -> None:
        """Count work of uplink rules, which belongs to no client."""
        self._stop -= work // _FIXED

    def _charge(self, client_id: str, work: int) -> None:
        """Charge a client with more than an ordinary evaluation."""
        # a message that can be postponed has a limit of its own
        if self.pieces >= PIECES and work > QUICK:
            self._turn_cost += work
        total = self._clients[client_id] = self._clients.get(client_id, 0) + work
        if total > CLIENT:
            self._exhausted.add(client_id)

    def _skip(self, where: Filter, message: Message, client_id: str) -> int:
        """Skip a filter: for now, or if there is no later turn, for this message."""
        if self._evaluated < self._stop:
            self._note(where, message, client_id, over_budget.CLIENT)
        elif self.pieces < PIECES:
            self.unfinished = True
        else:
            self._note(where, message, client_id, over_budget.MESSAGE)
        return _SKIPPED

    def _exceeded(
        self, where: Filter, message: Message, client_id: str, work: int, quick: bool
    ) -> int:
        """Count an evaluation that was aborted after this much work."""
        self._stop -= work // _FIXED
        self._charge(client_id, work)
        if quick:
            return _CUT_SHORT
        if work < _EVALUATION:
            self._note(where, message, client_id, over_budget.MESSAGE)
            return _SKIPPED
        self._note(where, message, client_id, over_budget.EVALUATION)
        return _NOT_PASSED

    def _note(self, where: Filter, message: Message, client_id: str, bound: str) -> None:
        """Count a filter that is NULL because its evaluation was not finished."""
        figures = where.figures
        figures.evaluated += 1
        figures.null += 1
        figures.over_budget += 1
        self._evaluated += 1
        self.null += 1
        self.over.note(f"client {client_id!r}", bound, where.text, message, self.now)

    def count_passed(self, where: Evaluable) -> None:
        """Count an expression that an index has found to be TRUE."""
        figures = where.figures
        figures.evaluated += 1
        figures.passed += 1
        self._decided += 1
        self.passed += 1

    @property
    def promoted(self) -> int:
        """How many of the expressions in use have a generated function."""
        return len(self._promoted)

    def sample(self, where: Evaluable, message: Message, owner: str, used: int = 0) -> None:
        """Promote an expression that is evaluated often, and measure an evaluation.

        It was evaluated for this message before, so the message is already decoded. `owner` is
        named in the warning about a slow one. If it `used` more work than an ordinary one, it is
        not evaluated again: its work is taken as its time.
        """
        if where.figures.evaluated >= PROMOTED and self.now != self._promoted_at:
            self._promote(where)
        if self.timer is not None:
            message.work_left = UNBOUNDED
            self._measure(where, message, owner, self.timer, used)

    def _promote(self, where: Evaluable) -> None:
        """Generate an expression's function, one in a turn: many may be due for one message."""
        known = self._promoted
        if len(known) < MAXIMUM_PROMOTED and where not in known and where.promote():
            self._promoted_at = self.now
            known.add(where)

    def _measure(
        self, where: Evaluable, message: Message, owner: str, timer: Callable[[], int], used: int
    ) -> None:
        elapsed = used if used > SLOW_NANOSECONDS else _time(timer, where, message)
        # measured again, in case another process had the processor
        if SLOW_NANOSECONDS < elapsed != used:
            elapsed = min(elapsed, _time(timer, where, message))
        figures = where.figures
        figures.samples += 1
        figures.nanoseconds += elapsed
        slowest = self.slowest
        if slowest is None or figures.mean > slowest.figures.mean:
            self._slowest = ref(where)
        if elapsed > SLOW_NANOSECONDS:
            self.slow += 1
            self._warn(where, elapsed, owner, timer())

    def _warn(self, where: Evaluable, elapsed: int, owner: str, now: int) -> None:
        if self._warned is not None and now - self._warned < WARNING_NANOSECONDS:
            self._unreported += 1
            return
        logger.warning(
            "%s: an evaluation took %.1f ms, %.1f ms are allowed (%d more since the last line): %s",
            owner,
            elapsed / 1_000_000,
            SLOW_NANOSECONDS / 1_000_000,
            self._unreported,
            shown(where.text),
        )
        self._warned, self._unreported = now, 0


def _time(timer: Callable[[], int], where: Evaluable, message: Message) -> int:
    begin = timer()
    where.evaluate(message)
    return timer() - begin
