"""Every figure that the gateway tells of itself, filtered by `/`."""

from typing import Any

from tui.line import Line, box
from tui.table import Column, Table
from tui.view import View

Figure = tuple[str, str]
NAME, VALUE = 56, 24
"""cells of the longest usual name, and of a value beside it"""


class EveryFigure(View):
    """A table of names and values."""

    title = "figures"

    def __init__(self, session: Any) -> None:
        super().__init__(session)
        self.table: Table[Figure] = Table(
            columns(NAME), lambda row: row[0], empty="nothing received yet"
        )

    def every_figure(self) -> bool:
        """Return that it shows more than the usual figures."""
        return True

    def draw(self, cells: int, height: int) -> list[Line]:
        """Return the table."""
        self.table.columns = columns(min(NAME, max(cells - VALUE, cells // 2)))
        self.table.fill(list(self.session.state.figures.shown()))
        lines = self.table.draw(cells - 4, height - 2)
        right = f"{len(self.table.rows)} of {self.table.total}"
        return box(
            "figures: docs/operate/sys-topics.md says what each means", lines, cells, height, right
        )


def columns(name: int) -> list[Column[Figure]]:
    """Return the two columns, of which a name has so many cells."""
    return [
        Column[Figure]("FIGURE", name, lambda row: row[0], lambda row: row[0]),
        Column[Figure]("VALUE", 0, lambda row: row[1]),
    ]


def show_figures(session: Any, words: str) -> None:
    """Open the figures, filtered by words."""
    view = EveryFigure(session)
    view.table.filter = words
    session.open(view)
