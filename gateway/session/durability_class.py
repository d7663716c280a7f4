"""How soon what a client does, or publishes, has to be on disk."""

from typing import NamedTuple

BEHIND_ALL = 1_000_000
"""The place of a class that no entry of the configuration names."""


class DurabilityClass(NamedTuple):
    """A class, and the place in the configuration of what says so; the lowest place holds.

    `commit_within` is how many seconds the commit may be put off: 0.0 for `commit`, more for
    `batch(<ms>)`, None for `memory`, which is not written.
    """

    commit_within: float | None = 0.0
    place: int = BEHIND_ALL


COMMIT = DurabilityClass()
"""On disk before it is answered, as soon as can be."""
