"""Writes only the cells that differ to the terminal, each style once a frame."""

from collections.abc import Iterable
from functools import lru_cache

from rich.console import COLOR_SYSTEMS, Console, ConsoleOptions, RenderResult
from rich.style import Style
from textual._compositor import ChopsUpdate, CompositorUpdate
from textual.strip import Strip

GAP = 6
"""equal cells that are written again, since moving over them would take more bytes"""

Run = tuple[Style, int, int, str]
"""a style, a line, a column, and the text from there on"""


class Cells:
    """What the terminal shows, line by line, as far as it is known."""

    def __init__(self) -> None:
        self._lines: dict[int, Strip] = {}

    def forget(self) -> None:
        """Take it that the terminal may show anything: lines are written whole once."""
        self._lines.clear()

    def write(self, lines: Iterable[tuple[int, Strip]], console: Console) -> str:
        """Return what makes a terminal that shows the lines before show these."""
        runs: list[Run] = []
        for y, strip in lines:
            before = self._lines.get(y)
            self._lines[y] = strip
            runs += _runs(y, Strip([]) if before is None else before, strip)
        runs.sort(key=lambda run: sgr(run[0], console))  # stable: lines stay in order
        written, last = [], ""
        for style, y, x, text in runs:
            if (codes := sgr(style, console)) != last:
                written.append(codes)
                last = codes
            written.append(f"\x1b[{y + 1};{x + 1}H{text}")
        return "".join(written) + ("\x1b[0m" if last else "")


class CellsUpdate(CompositorUpdate):
    """Stands for an update of Textual's, which writes a line from its beginning."""

    def __init__(self, update: ChopsUpdate, cells: Cells) -> None:
        self._update = update
        self._cells = cells

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Give what Textual would write."""
        yield from self._update.__rich_console__(console, options)

    def render_segments(self, console: Console) -> str:
        """Return what is to be written."""
        changed = sorted({y for y, _, _ in self._update.spans})
        parts = ((y, self._update.chops[y].values()) for y in changed)
        lines = ((y, Strip.join([each for each in part if each])) for y, part in parts)
        return self._cells.write(lines, console)


@lru_cache(256)
def _codes(style: Style, system: str | None) -> str:
    return style.render("x", color_system=COLOR_SYSTEMS.get(system or "")).partition("x")[0]


def sgr(style: Style, console: Console) -> str:
    """Return the sequence after which text has this style and no other."""
    return "\x1b[0;" + _codes(style, console.color_system).removeprefix("\x1b[").rstrip("m") + "m"


def _runs(y: int, old: Strip, new: Strip) -> list[Run]:
    """Return the parts of a line that differ; all of it where cells are not characters."""
    before = [(each, segment.style) for segment in old for each in segment.text]
    after = [(each, segment.style or Style.null()) for segment in new for each in segment.text]
    if not len(before) == len(after) == old.cell_length == new.cell_length:
        return _whole(y, new)
    runs: list[Run] = []
    end = 0
    for x, (text, style) in enumerate(after):
        if before[x] == (text, style):
            continue
        between = after[end:x]
        if runs and runs[-1][0] == style and len(between) <= GAP and _all(between, style):
            joined = runs[-1][3] + "".join(each for each, _ in between) + text
            runs[-1] = (*runs[-1][:3], joined)
        else:
            runs.append((style, y, x, text))
        end = x + 1
    return runs


def _all(cells: list[tuple[str, Style]], style: Style) -> bool:
    return all(each == style for _, each in cells)


def _whole(y: int, strip: Strip) -> list[Run]:
    runs, x = [], 0
    for segment in strip.simplify():
        runs.append((segment.style or Style.null(), y, x, segment.text))
        x += segment.cell_length
    return runs
