"""What a quantity's readings mean between two of them."""

import re
from collections.abc import Mapping

import numpy as np

from pipeline.tables.arrays import Array, Coded

EVENT, SAMPLE, STATE, TOTAL = "event", "sample", "state", "total"
KINDS = (EVENT, SAMPLE, STATE, TOTAL)
"""An event, which has no duration; a number that holds until the next one; a text or boolean that
holds; a counter that rises. A kind's code is its place here."""

DAY_MS = 86_400_000
HOLDS_MS = {EVENT: 0, SAMPLE: DAY_MS, STATE: 31 * DAY_MS, TOTAL: 31 * DAY_MS}
"""How long a reading holds at most where no other one follows. A rule with a dead band sends a
number at least once a day if it has a heartbeat; a door may stay closed for weeks, and a meter
shows after an outage what rose in it."""
BAD = "bad"
"""How the quality begins of a row that says of itself that its value is wrong."""

_EVENTS = re.compile("(^|_)(event|action|button|click|press)$")
_TOTALS = re.compile("(^|_)(energy|count|counter|pulses|total)(_|$)")
_TOTAL_UNITS = ("Wh", "kWh", "MWh")


def code(kind: str) -> int:
    """Return a kind's code."""
    return KINDS.index(kind)


def holds() -> Array:
    """Return how long a value holds at most, in ms, by the code of its kind."""
    return np.array([HOLDS_MS[kind] for kind in KINDS], np.int64)


def kinds_of(quantity: Coded, unit: Coded, state: Array, own: Mapping[str, str]) -> Array:
    """Return the codes of the kinds of rows; `state` says which have a text and no number.

    `own` has kinds of quantities. A text is a state or an event whatever they are.
    """
    declared = [own.get(name, "") for name in quantity.values.to_pylist()]
    named = [name.lower() for name in quantity.values.to_pylist()]
    events = np.array([*(bool(_EVENTS.search(name)) for name in named), False])
    totals = np.array([*(bool(_TOTALS.search(name)) for name in named), False])
    counting = np.array([*(name in _TOTAL_UNITS for name in unit.values.to_pylist()), False])
    of = np.array([*(KINDS.index(kind) if kind else -1 for kind in declared), -1])[quantity.codes]
    numeric = np.isin(of, [code(SAMPLE), code(TOTAL)])
    found = np.select(
        [events[quantity.codes], state, totals[quantity.codes] | counting[unit.codes]],
        [code(EVENT), code(STATE), code(TOTAL)],
        code(SAMPLE),
    )
    return np.where((of >= 0) & ~(numeric & state), of, found)
