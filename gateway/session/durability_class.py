"""How soon a client's changes and messages must be on disk."""

from typing import NamedTuple

LOWEST_PRIORITY = 1_000_000
"""The priority of a class that no entry of the configuration names."""


class DurabilityClass(NamedTuple):
    """A class, and the index of its entry in the configuration; the lowest index wins.

    `commit_within` is how many seconds the commit may be delayed: 0.0 for `commit`, more for
    `batch(<ms>)`, None for `memory`, which is not written.
    """

    commit_within: float | None = 0.0
    place: int = LOWEST_PRIORITY


COMMIT = DurabilityClass()
"""On disk before it is answered, as soon as possible."""
