"""Prometheus metadata of a `$SYS` figure: its name, type and labels."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from gateway.counters import Counters

PLACEHOLDER = re.compile(r"<(\w+)>")

IN_A_SECOND = {"ms": 1000, "microseconds": 1_000_000, "days": 1 / 86_400}
"""Units in figures' names; Prometheus has seconds everywhere."""


class Kind(StrEnum):
    """The type of a metric.

    What only rises while the gateway runs is a counter, and everything else a gauge.
    """

    COUNTER = "counter"
    GAUGE = "gauge"


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure by its name below `$SYS/broker/`, in which `<rule>` stands for a part that varies.

    `words` are the values of one that is a word: each becomes a series, which is 1 or 0.
    """

    name: str
    kind: Kind
    help: str
    metric_name: str = ""  # what `metric` is, if not what follows from the name
    words: tuple[str, ...] = ()

    @property
    def metric(self) -> str:
        """The metric's name: `tidegate_` and the parts of the figure's own.

        A part that varies becomes a label and gives only what the part before it does not say:
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
        if parts[-1] == "count":  # the ending belongs to histograms
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
        """What a value of the figure is divided by to be one of the metric."""
        words = re.split(r"[/_ ]", self.name)
        return next((IN_A_SECOND[word] for word in words if word in IN_A_SECOND), 1)

    @property
    def varies(self) -> bool:
        """True when the name has a part that varies."""
        return "<" in self.name

    def pattern(self) -> re.Pattern[str]:
        """Return what matches the names that this figure stands for, with a group by label."""
        literal, *rest = PLACEHOLDER.split(self.name)
        text = re.escape(literal)
        for label, literal in zip(rest[::2], rest[1::2], strict=True):
            text += f"(?P<{label}>.+){re.escape(literal)}"
        return re.compile(text, re.DOTALL)


def own(part: str, kind: Kind, figures: dict[str, str]) -> tuple[Figure, ...]:
    """Return figures of one part of Tidegate and kind, given as name and help."""
    return tuple(Figure(f"tidegate/{part}/{name}", kind, text) for name, text in figures.items())


def begin_at_zero(counters: Counters, figures: Iterable[Figure]) -> None:
    """Let counters be there from the start, so that a first event is a rise.

    Those with a part that varies are left out.
    """
    for figure in figures:
        if figure.kind is Kind.COUNTER and not figure.varies:
            counters.add(figure.name, 0)
