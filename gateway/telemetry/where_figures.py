"""Figures of subscription filters: totals, and the filters that took the most time."""

import json
from heapq import nlargest
from typing import TYPE_CHECKING

from gateway.broker.broker import Broker
from gateway.counters import Counters
from gateway.routing.over_budget import shown

if TYPE_CHECKING:
    from gateway.where.compile import Where

BUSIEST = 5
"""Filters shown singly."""


class WhereFigures:
    """Updates `tidegate/where/…`; `look` visits every filter in use."""

    def __init__(self, broker: Broker, counters: Counters) -> None:
        self._broker = broker
        self._counters = counters

    def refresh(self) -> None:
        """Set the totals."""
        budget, counters = self._broker.budget, self._counters
        counters.set("tidegate/where/evaluated", budget.evaluated)
        counters.set("tidegate/where/passed", budget.passed)
        counters.set("tidegate/where/filtered", budget.filtered)
        counters.set("tidegate/where/null", budget.null)
        counters.set("tidegate/where/slow", budget.slow)
        counters.set("tidegate/where/over_budget", budget.over.count)
        counters.set("tidegate/where/promoted", budget.promoted)
        counters.set("tidegate/where/expressions", len(self._broker.expressions))
        slowest = budget.slowest
        text = "" if slowest is None else shown(slowest.text)
        microseconds = 0.0 if slowest is None else slowest.figures.mean / 1000
        counters.set("tidegate/where/slowest", text)
        counters.set("tidegate/where/slowest_microseconds", f"{microseconds:.1f}")

    def update(self) -> None:
        """Set the filters that have taken the most time since their first subscription."""
        in_use = [*self._broker.expressions.in_use(), *self._broker.subscription_filters.wheres]
        asked = [where for where in in_use if where.figures.evaluated]
        busiest = nlargest(BUSIEST, asked, key=_time)
        text = json.dumps([_told(where) for where in busiest], ensure_ascii=False)
        self._counters.set("tidegate/where/busiest", text)


def _time(where: "Where") -> float:
    return where.figures.evaluated * where.figures.mean


def _told(where: "Where") -> dict[str, str | int | float]:
    figures = where.figures
    return {
        "where": shown(where.text),
        "evaluated": figures.evaluated,
        "passed": figures.passed,
        "filtered": figures.filtered,
        "null": figures.null,
        "over_budget": figures.over_budget,
        "microseconds": round(figures.mean / 1000, 1),
    }
