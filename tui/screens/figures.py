"""Every figure that the gateway tells of itself, filtered by `/`."""

from typing import Any

from tui.line import Line, box
from tui.table import Column, Table
from tui.view import View

Figure = tuple[str, str]


class EveryFigure(View):
    """A table of names and values."""

    title = "figures"

    def __init__(self, session: Any) -> None:
        super().__init__(session)
        columns = [
            Column[Figure]("FIGURE", 0, lambda row: row[0], lambda row: row[0]),
            Column[Figure]("VALUE", 30, lambda row: row[1], right=True),
        ]
        self.table: Table[Figure] = Table(columns, lambda row: row[0], empty="nothing came yet")

    def every_figure(self) -> bool:
        """Return that it shows more than the usual figures."""
        return True

    def draw(self, cells: int, height: int) -> list[Line]:
        """Return the table."""
        self.table.fill(list(self.session.state.figures.shown()))
        lines = self.table.draw(cells - 4, height - 2)
        right = f"{len(self.table.rows)} of {self.table.total}"
        return box("figures: docs/sys-topics.md says what each means", lines, cells, height, right)


def show_figures(session: Any, words: str) -> None:
    """Open the figures, filtered by words."""
    view = EveryFigure(session)
    view.table.filter = words
    session.open(view)
