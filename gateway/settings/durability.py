"""The words for durability classes: `commit`, `batch(<ms>)` and `memory`."""

import re

from gateway.settings.declaration import check

MAXIMUM_WINDOW = 120_000
"""Milliseconds that a commit may be put off by `batch(<ms>)`: a publisher waits all that time."""

_BATCH = re.compile(r"batch\(([1-9][0-9]{0,5})\)")

ALLOWED = f'"commit", "memory" or "batch(<ms>)" with 1 to {MAXIMUM_WINDOW} ms'


@check(
    '`"commit"`, `"memory"`, `"batch(<ms>)"`',
    type="string",
    pattern=r"^(commit|memory|batch\([1-9][0-9]{0,5}\))$",
)
def durability(value: object) -> str:
    """Accept the name of a durability class; raise ValueError with what is allowed."""
    if not isinstance(value, str):
        raise ValueError(ALLOWED)  # noqa: TRY004 - one error for every bad setting
    commit_within(value)
    return value


def commit_within(durability_class: str) -> float | None:
    """Return the seconds by which a commit may be delayed: 0.0 for `commit`, None for `memory`."""
    if durability_class == "commit":
        return 0.0
    if durability_class == "memory":
        return None
    match = _BATCH.fullmatch(durability_class)
    if match is None or int(match[1]) > MAXIMUM_WINDOW:
        raise ValueError(ALLOWED)
    return int(match[1]) / 1000
