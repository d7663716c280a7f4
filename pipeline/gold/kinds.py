"""What a quantity's readings mean between two of them, as Spark SQL."""

SAMPLE, TOTAL, STATE, EVENT = "sample", "total", "state", "event"
KINDS = (SAMPLE, TOTAL, STATE, EVENT)
"""A number that holds until the next one; a counter that rises; a text or boolean that holds; an
event, which has no duration."""

DAY_MS = 86_400_000
HOLDS_MS = {SAMPLE: DAY_MS, TOTAL: DAY_MS, STATE: 31 * DAY_MS, EVENT: 0}
"""How long a reading holds at most where no other one follows. A rule with a dead band sends a
number at least once a day if it has a heartbeat; a door may stay closed for weeks."""

_EVENTS = "(^|_)(event|action|button|click|press)$"
_TOTALS = "(^|_)(energy|count|counter|pulses|total)(_|$)"
_TOTAL_UNITS = "'Wh', 'kWh', 'MWh'"

KIND = f"""CASE WHEN lower(quantity) RLIKE '{_EVENTS}' THEN '{EVENT}'
    WHEN value IS NULL AND value_text IS NOT NULL THEN '{STATE}'
    WHEN unit IN ({_TOTAL_UNITS}) OR lower(quantity) RLIKE '{_TOTALS}' THEN '{TOTAL}'
    ELSE '{SAMPLE}' END"""
"""The kind of a row with `quantity`, `unit`, `value` and `value_text`."""

HOLDS = "CASE kind " + " ".join(f"WHEN '{k}' THEN {ms}" for k, ms in HOLDS_MS.items()) + " END"
"""How long a row's value holds at most, in ms, by its `kind`."""

BAD = "coalesce(lower(quality) LIKE 'bad%', false)"
"""Whether a row says of itself that its value is wrong."""
