"""The figures of several uplinks: each below its name, and of all together."""

from collections.abc import Sequence

from gateway.counters import Counters

PART = "tidegate/uplink/"
"""Before what an uplink says of itself; with several its name follows."""

CONNECTED = "connected"


def uplink_counters(counters: Counters, names: Sequence[str]) -> list[Counters]:
    """Return what each uplink counts with; one alone counts with `counters`."""
    if len(names) == 1:
        return [counters]
    made: list[UplinkCounters] = []
    for name in names:
        made.append(UplinkCounters(counters, name, made))
    return list(made)


class UplinkCounters(Counters):
    """The figures of one of several uplinks, which are shown by name.

    In the figures without a name counts are sums, words stand side by side, and the state is that
    of the first uplink that is not connected.
    """

    __slots__ = ("_all", "_name", "_of_all")

    def __init__(self, counters: Counters, name: str, of_all: "Sequence[UplinkCounters]") -> None:
        super().__init__()
        self._all = counters
        self._name = name
        self._of_all = of_all

    def add(self, name: str, count: int = 1) -> None:
        """Raise the counter by its own name and in the sum."""
        super().add(name, count)
        self._all.add(name, count)
        self._all.set(self._named(name), self.values[name])

    def add_each(self, names: tuple[str, ...]) -> None:
        """Raise each of these counters in the same way."""
        for name in names:
            self.add(name)

    def set(self, name: str, value: int | float | str) -> None:  # noqa: PYI041
        """Set the gauge by its own name and the one of all."""
        super().set(name, value)
        self._all.set(self._named(name), value)
        self._all.set(name, self._together(name))

    def _named(self, name: str) -> str:
        return f"{PART}{self._name}/{name.removeprefix(PART)}"

    def _together(self, name: str) -> int | float | str:
        known = [(each._name, each.values[name]) for each in self._of_all if name in each.values]  # noqa: SLF001
        if name == f"{PART}state":
            return next((state for _, state in known if state != CONNECTED), CONNECTED)
        if any(isinstance(value, str) for _, value in known):
            return "; ".join(f"{uplink}: {value}" for uplink, value in known if value)
        return sum(value for _, value in known if not isinstance(value, str))
