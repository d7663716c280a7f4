"""Counters and gauges of one gateway, by their names under $SYS."""

from collections.abc import Callable
from typing import cast


class Counters:
    """Values by their topic below `$SYS/broker/`, such as `tidegate/outbox/rows`.

    A counter only rises (`add`); a gauge is the last value (`set`). `before_reading` set the gauges
    that change with each message; `refresh` calls them.
    docs/operate/sys-topics.md lists every name with its meaning and unit.
    """

    __slots__ = ("_counts", "before_reading", "values")

    def __init__(self) -> None:
        self.values: dict[str, int | float | str] = {}
        self._counts = cast("dict[str, int]", self.values)  # those that `add` raises
        self.before_reading: list[Callable[[], None]] = []

    def refresh(self) -> None:
        """Update the gauges that are not set at each change."""
        for show in self.before_reading:
            show()

    def add(self, name: str, count: int = 1) -> None:
        """Raise the counter `name` by `count`."""
        try:
            self._counts[name] += count
        except KeyError:
            self._counts[name] = count

    def add_each(self, names: tuple[str, ...]) -> None:
        """Raise each of these counters by one."""
        counts = self._counts
        for name in names:
            try:
                counts[name] += 1
            except KeyError:
                counts[name] = 1

    def set(self, name: str, value: int | float | str) -> None:  # noqa: PYI041
        """Set the gauge `name` to `value`."""
        self.values[name] = value

    def forget(self, name: str) -> None:
        """Remove a figure whose subject was removed."""
        self.values.pop(name, None)

    def count(self, name: str) -> int:
        """Return the counter `name`, 0 while nothing was counted."""
        return int(self.values.get(name, 0))
