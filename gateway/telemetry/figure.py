"""Prometheus metadata of a `$SYS` figure: its name, type and labels."""

import re
from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from gateway.counters import Counters

PLACEHOLDER = re.compile(r"<(\w+)>")

IN_A_SECOND = {"ms": 1000, "microseconds": 1_000_000, "days": 1 / 86_400}
"""Units in figures' names; Prometheus has seconds everywhere."""


class Kind(StrEnum):
    """The type of a metric.

    A figure that only rises while the gateway runs is a counter, and everything else a gauge.
    """

    COUNTER = "counter"
    GAUGE = "gauge"


class Figure(NamedTuple):
    """A figure by its name below `$SYS/broker/`, in which `<rule>` is a variable part.

    `words` are the values of a figure that is a word: each becomes a series, which is 1 or 0.
    """

    name: str
    kind: Kind
    help: str
    metric_name: str = ""  # the name of `metric`, if it does not follow from `name`
    words: tuple[str, ...] = ()

    @property
    def metric(self) -> str:
        """The metric's name: `tidegate_` and the parts of the figure's own.

        A variable part becomes a label and adds to the name only what the part before it lacks:
        `rules/<rule>/passed` is `rule_passed`, `outbox/stream/<stream>/rows` `outbox_stream_rows`.
        """
        if self.metric_name:
            return self.metric_name
        parts: list[str] = []
        levels = self.name.removeprefix("tidegate/").split("/")
        for index, level in enumerate(levels):
            varies = PLACEHOLDER.match(level)
            if varies is None:
                parts.append(level.replace(" ", "_"))
            elif parts[-1] == f"{varies[1]}s":
                parts[-1] = varies[1]
            elif parts[-1] != varies[1] and index < len(levels) - 1:
                parts.append(varies[1])
        if parts[-1] == "count":  # the suffix belongs to histograms
            parts.pop()
        words = "_".join(parts).split("_")
        unit = next((word for word in words if word in IN_A_SECOND), None)
        if unit is not None:
            words.remove(unit)
            words.append("seconds")
        if self.kind is Kind.COUNTER:
            words.append("total")
        return "_".join(("tidegate", *words))

    @property
    def divisor(self) -> float:
        """The divisor from the figure's unit to the metric's."""
        words = re.split(r"[/_ ]", self.name)
        return next((IN_A_SECOND[word] for word in words if word in IN_A_SECOND), 1)

    @property
    def varies(self) -> bool:
        """True if the name has a variable part."""
        return "<" in self.name

    def pattern(self) -> re.Pattern[str]:
        """Return a pattern of the figure's names, with a group for each label."""
        literal, *rest = PLACEHOLDER.split(self.name)
        text = re.escape(literal)
        for label, literal in zip(rest[::2], rest[1::2], strict=True):
            text += f"(?P<{label}>.+){re.escape(literal)}"
        return re.compile(text, re.DOTALL)


def own(part: str, kind: Kind, figures: dict[str, str]) -> tuple[Figure, ...]:
    """Return figures of one part of Tidegate and kind, given by name and help."""
    return tuple(Figure(f"tidegate/{part}/{name}", kind, text) for name, text in figures.items())


def begin_at_zero(counters: Counters, figures: Iterable[Figure]) -> None:
    """Create counters at the start, so that a first event is an increase.

    Those with a variable part are skipped.
    """
    for figure in figures:
        if figure.kind is Kind.COUNTER and not figure.varies:
            counters.add(figure.name, 0)
