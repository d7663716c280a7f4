"""Counters of one expression (where-language 14.8)."""


class Figures:
    """How often an expression was evaluated, with which results; of some evaluations the time.

    `nanoseconds` is the sum of the `samples` that were measured. `over_budget` are those that were
    NULL because they would have cost too much.
    """

    __slots__ = ("evaluated", "nanoseconds", "null", "over_budget", "passed", "samples")

    def __init__(self) -> None:
        self.evaluated = 0
        self.passed = 0
        self.null = 0
        self.over_budget = 0
        self.nanoseconds = 0
        self.samples = 0

    @property
    def filtered(self) -> int:
        """How often the result was FALSE or NULL."""
        return self.evaluated - self.passed

    @property
    def mean(self) -> float:
        """Nanoseconds of an evaluation, 0 while none was measured."""
        return self.nanoseconds / self.samples if self.samples else 0.0
