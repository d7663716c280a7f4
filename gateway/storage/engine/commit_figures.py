"""What commits cost: how many there were, how long they took and how much shared them."""

from gateway.counters import Counters


class CommitFigures:
    """Counts commits under `$SYS/broker/tidegate/storage/`; means are over the whole run."""

    __slots__ = ("_commits", "_counters", "_longest", "_most_rows", "_rows", "_seconds")

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._commits = 0
        self._rows = 0
        self._most_rows = 0
        self._seconds = 0.0
        self._longest = 0.0
        counters.set("tidegate/storage/commits", 0)
        counters.set("tidegate/storage/rows", 0)

    def count(self, rows: int, seconds: float) -> None:
        """Count one commit of so many rows that took so long, with the way to its thread."""
        self._commits += 1
        self._rows += rows
        self._seconds += seconds
        self._most_rows = max(self._most_rows, rows)
        self._longest = max(self._longest, seconds)
        counters = self._counters
        mean = 1000 * self._seconds / self._commits
        counters.set("tidegate/storage/commits", self._commits)
        counters.set("tidegate/storage/rows", self._rows)
        counters.set("tidegate/storage/commit_rows_mean", round(self._rows / self._commits, 1))
        counters.set("tidegate/storage/commit_rows_most", self._most_rows)
        counters.set("tidegate/storage/commit_ms_mean", round(mean, 2))
        counters.set("tidegate/storage/commit_ms_longest", round(1000 * self._longest, 2))
