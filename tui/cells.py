"""Writes only the cells that differ to the terminal, and no more than it takes in a moment."""

from collections.abc import Iterable
from functools import lru_cache

from rich.console import COLOR_SYSTEMS, Console
from rich.style import Style
from textual.strip import Strip

GAP = 6
"""equal cells that are written again, since moving over them would take more bytes"""
RUN = 24
"""bytes that a move and a style take, about"""
MOMENT = 0.15
"""seconds that a terminal may need for what is written at a time: a key waits no longer"""
LEAST, FIRST, MOST = 256, 1_024, 65_536
"""bytes written at a time: at least, at first, at most"""
INSTANT = 0.005
"""seconds that are not measured"""
PATIENCE = 0.3
"""seconds in which a terminal that ever answers does so first"""
LOST = 2.0
"""seconds after which an answer does not come any more"""
WHERE = "\x1b[1;1H\x1b[6n"
"""asks a terminal where its cursor is, which it says when it has shown all before it"""

Run = tuple[Style, int, int, str]
"""a style, a line, a column, and the text from there on"""


class Pace:
    """How much a terminal takes in a moment, by how soon it answers for what was written.

    A terminal that never answers is written to without end.
    """

    def __init__(self) -> None:
        self.budget = FIRST
        self.answers = True
        """whether it ever answered, or may yet"""
        self._base: float | None = None
        self._queried_at: float | None = None
        self._octets = 0

    def ready(self, now: float) -> bool:
        """Return whether more can be written: all that was written is shown."""
        if self._queried_at is None:
            return True
        if now - self._queried_at < (PATIENCE if self._base is None else LOST):
            return False
        self._queried_at = None
        if self._base is None:
            self.answers, self.budget = False, MOST
        return True

    def wrote(self, octets: int, now: float) -> None:
        """Take it that so much was written, with a question behind it."""
        if self.answers:
            self._queried_at, self._octets = now, octets

    def answered(self, now: float) -> None:
        """Take the answer: the quickest one is the way there and back, the rest is writing."""
        if self._queried_at is None:
            return
        took, self._queried_at = now - self._queried_at, None
        self._base = took if self._base is None else min(self._base, took)
        if self._octets < LEAST:
            return  # too little to tell a slow line from a slow program
        takes = self._octets * MOMENT / max(took - self._base, INSTANT)
        if takes < self.budget or self._octets >= self.budget // 2:
            self.budget = int(max(LEAST, min(takes, 4 * self.budget, MOST)))


class Cells:
    """What the terminal shows, line by line, as far as it is known, and what it is to show."""

    def __init__(self) -> None:
        self._shown: dict[int, Strip] = {}
        self._wanted: dict[int, Strip] = {}
        self._pending: dict[int, None] = {}

    def forget(self) -> None:
        """Take it that the terminal may show anything: what is wanted is written whole once."""
        self._shown.clear()
        self._wanted.clear()
        self._pending.clear()

    @property
    def behind(self) -> bool:
        """Whether something has not been written yet."""
        return bool(self._pending)

    def want(self, lines: Iterable[tuple[int, Strip]], *, first: bool = False) -> None:
        """Have these lines shown, before those that wait already or after them."""
        changed: dict[int, None] = {}
        for y, strip in lines:
            self._wanted[y] = strip
            if self._shown.get(y) != strip:
                changed[y] = None
            else:
                self._pending.pop(y, None)
        self._pending = {**changed, **self._pending} if first else {**self._pending, **changed}

    def write(self, console: Console, budget: int = MOST) -> str:
        """Return what shows the next lines that wait, as many as take about so many bytes."""
        runs: list[Run] = []
        octets = 0
        for y in list(self._pending):
            before, strip = self._shown.get(y, Strip([])), self._wanted[y]
            found = _runs(y, before, strip)
            octets += sum(len(text.encode()) + RUN for _, _, _, text in found)
            if runs and octets > budget:
                break
            runs += found
            self._shown[y] = strip
            del self._pending[y]
        runs.sort(key=lambda run: sgr(run[0], console))  # stable: lines stay in order
        written, last = [], ""
        for style, y, x, text in runs:
            if (codes := sgr(style, console)) != last:
                written.append(codes)
                last = codes
            written.append(f"\x1b[{y + 1};{x + 1}H{text}")
        return "".join(written) + ("\x1b[0m" if last else "")


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
