"""Everything that a gateway tells of itself in numbers and words, part by part."""

from collections.abc import Iterator

from tui.payload import as_count, as_text
from tui.text import amount, printable, size, span

ROOT = "tidegate/"
NOT_FIGURES = ("log", "alarm")
"""parts that have places of their own on the screen"""

MAX_FIGURES = 1_000
"""figures; a further one is counted and not kept"""
MAX_NAME = 64
"""characters of a name"""
MAX_WORDS = 256
"""characters of a value"""


class EveryFigure:
    """The last value of each figure below `$SYS/broker/tidegate/`."""

    def __init__(self) -> None:
        self._values: dict[tuple[str, str], bytes] = {}
        self.left_out = 0
        """messages about figures beyond MAX_FIGURES"""

    def take(self, name: str, payload: bytes) -> None:
        """Keep the value of `tidegate/<part>/<name>`; an empty payload ends it."""
        part, _, figure = name.removeprefix(ROOT).partition("/")
        if not name.startswith(ROOT) or not figure or part in NOT_FIGURES:
            return
        key = part, figure
        if not payload:
            self._values.pop(key, None)
        elif key in self._values or len(self._values) < MAX_FIGURES:
            self._values[key] = payload
        else:
            self.left_out += 1

    def clear(self) -> None:
        """Forget everything."""
        self._values.clear()
        self.left_out = 0

    def parts(self) -> Iterator[tuple[str, list[tuple[str, str]]]]:
        """Give each part with its figures as (label, value), both in alphabetical order."""
        by_part: dict[str, list[tuple[str, str]]] = {}
        for (part, figure), payload in sorted(self._values.items()):
            label = printable(figure.replace("_", " "), MAX_NAME)
            by_part.setdefault(printable(part, MAX_NAME), []).append(
                (label, _shown(figure, payload))
            )
        yield from by_part.items()

    def of_part(self, part: str) -> dict[str, str]:
        """Return the figures of a part that have a name of one level."""
        return {
            figure: _shown(figure, payload)
            for (other, figure), payload in self._values.items()
            if other == part and "/" not in figure
        }

    def by_name(self, part: str) -> dict[str, dict[str, str]]:
        """Return the figures of a part whose names are `<name>/<figure>`, by name."""
        found: dict[str, dict[str, str]] = {}
        for (other, path), payload in sorted(self._values.items()):
            name, _, figure = path.rpartition("/")
            if other == part and name:
                found.setdefault(printable(name, MAX_NAME), {})[figure] = _shown(figure, payload)
        return found


def _shown(figure: str, payload: bytes) -> str:
    """Return the value with the unit that the end of its name says."""
    count = as_count(payload)
    words = figure.replace("/", "_").split("_")
    if count is None:
        return as_text(payload, MAX_WORDS)
    if "bytes" in words or figure.endswith(("written_per_day", "write_budget")):
        return size(count)
    if words[-1] == "seconds":
        return span(count)
    if words[-1] == "days":
        return f"{count:,} d"
    if words[-1] in ("percent", "rate") and count <= 100:
        return f"{count} %"
    if words[-1] == "ms":
        return f"{count:,} ms"
    return amount(count)
