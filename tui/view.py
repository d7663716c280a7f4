"""What every screen and every detail is: queries it needs, lines it draws, keys it takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from tui.line import BORDER, MUTED, Line, fitted, line, restyled
from tui.queries import Answer, Query
from tui.subject import Subject
from tui.table import Table
from tui.text import age

if TYPE_CHECKING:
    from tui.session import Session

STALE_ANSWERS = 2.5
"""intervals after which an answer is shown as old"""
SLACK = 2.0
"""seconds that an answer may take"""


@dataclass(frozen=True)
class Action:
    """Something that a key does; it is in the footer, the help and the palette."""

    key: str
    label: str
    run: Callable[[], object]
    shown: str = ""
    """the key as the footer says it, if not by its name"""
    prompts: bool = False
    """whether a prompt follows"""
    quiet: bool = False
    """whether the footer leaves it out: the help has it"""

    @property
    def words(self) -> str:
        """The label as it is shown: with `…` where a question follows."""
        return f"{self.label}…" if self.prompts else self.label


class View:
    """A screen, or a detail on top of one. `open` is called when it comes into view."""

    title: ClassVar[str] = ""
    about: ClassVar[str] = ""
    """one sentence for the help"""
    panes: ClassVar[bool] = False
    """whether its table shares the screen with what is below it"""
    marks: ClassVar[bool] = False
    """whether there are actions on marked rows"""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.table: Table[Any] | None = None
        self.below: Table[Any] | None = None
        """a second table, for which `tab` has the keys go"""
        self.where = ""
        """the `$where` of what is sampled"""
        self.zoomed = False
        """whether its table has the whole screen"""

    def name(self) -> str:
        """Return how the bread crumb calls it."""
        return self.title

    def queries(self) -> list[Query]:
        """Return what the gateway is asked while it is in view."""
        return []

    def sampling(self) -> tuple[str, int] | None:
        """Return a topic filter to sample, and the milliseconds between two messages of a topic."""
        return None

    def every_figure(self) -> bool:
        """Return whether it shows figures beyond the usual ones."""
        return False

    def actions(self) -> Sequence[Action]:
        """Return what can be done here now, the most useful first."""
        return ()

    def subject(self) -> Subject | str | None:
        """Return what `w` explains now, or why it cannot; None where there is nothing to ask of."""
        return None

    def draw(self, cells: int, height: int) -> list[Line]:
        """Return exactly so many lines of so many cells."""
        raise NotImplementedError

    @property
    def focused(self) -> Table[Any] | None:
        """The table that keys go to."""
        if self.below is not None and self.below.has_keys and not self.zoomed:
            return self.below
        return self.table

    def focus(self, table: Table[Any] | None) -> None:
        """Have keys go to this table."""
        for each in (self.table, self.below):
            if each is not None:
                each.has_keys = each is table

    def frame_of(self, table: Table[Any]) -> str:
        """Return the style of the frame around a table: that with the keys stands out."""
        return "accent" if self.below is not None and table is self.focused else BORDER

    def next_pane(self) -> None:
        """Have keys go to the other table."""
        if self.below is not None and not self.zoomed:
            self.focus(self.table if self.below.has_keys else self.below)

    def click(self, y: int) -> None:
        """Take a click on a line of what was drawn last."""
        for table in (self.below, self.table):
            if table is not None and y > table.top and table.click(y - table.top - 1):
                self.focus(table)
                return

    def copied(self) -> str:
        """Return what `y` copies: the key of the row at the cursor, or the view's name."""
        table = self.focused
        row = table.current if table is not None else None
        return self.name() if table is None or row is None else table.key(row)

    def zoom(self) -> None:
        """Give the table the whole screen, or what is below it its part again."""
        self.zoomed = not self.zoomed
        self.focus(self.table)

    def closed(self) -> None:
        """Take it that the person has left."""

    def answer(self, wanted: Query) -> Answer:
        """Return what is known of one of its queries."""
        return self.session.queries.get(wanted)

    def old(self, wanted: Query, now: float) -> str:
        """Return how old an answer is if it is older than it should be, or why there is none."""
        answer = self.answer(wanted)
        if answer.error:
            since = answer.age(now)
            return answer.error if since is None else f"{answer.error}; {age(since)} old"
        since = answer.age(now)
        if since is None:
            return "asking…" if self.session.is_connected else "no connection"
        limit = STALE_ANSWERS * wanted.every + SLACK
        return f"{age(since)} old" if wanted.every and since > limit else ""


def dimmed(lines: list[Line], old: str) -> list[Line]:
    """Return lines as they are shown when their figures are old."""
    return [restyled(each, MUTED) for each in lines] if old else lines


def trouble(words: str, cells: int, height: int) -> list[Line]:
    """Return the lines of a screen that has nothing to show but why."""
    lines = [fitted([], cells), fitted(line(("  " + words, "warn")), cells)]
    return (lines + [fitted([], cells)] * max(0, height - 2))[:height]
