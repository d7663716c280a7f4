"""The uplinks one by one, each of which can be paused."""

from typing import ClassVar, NamedTuple

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import DataTable

from tui import figures
from tui.signs import state_content
from tui.state import GatewayState
from tui.text import amount, fit
from tui.uplink_order import word_for

COLUMNS = ("uplink", "state", "waiting", "in flight", "delivered", "resent", "where, or why not")
REASON = 40
"""cells of the last column"""
ONLY = "(the only one)"


class Row(NamedTuple):
    """An uplink as it is shown; `name` is "" for one without a name."""

    name: str
    state: str
    cells: tuple[str, ...]


class Uplinks(ModalScreen[None]):
    """A row for each uplink; `p` pauses or resumes the one at the cursor, escape leads back."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("p", "order", "Pause or resume"),
        Binding("escape,u,q", "dismiss", "Back"),
    ]

    class Ordered(Message):
        """The person wants one uplink to `pause` or to `resume`."""

        def __init__(self, word: str, name: str) -> None:
            super().__init__()
            self.word = word
            self.name = name

    def __init__(self, state: GatewayState) -> None:
        super().__init__()
        self._state = state
        self._rows: list[Row] = []
        self._table: DataTable[Text] = DataTable(cursor_type="row", id="uplinks-table")
        self._box = Vertical(self._table, id="uplinks")
        self._box.border_title = "Uplinks"
        self._box.border_subtitle = "↑ ↓: choose · p: pause or resume · escape: back"

    def compose(self) -> ComposeResult:
        """Yield the box with the table."""
        yield self._box

    def on_mount(self) -> None:
        """Draw the table, and let keys choose a row."""
        self._table.add_columns(*COLUMNS)
        self._table.focus()
        self.show()

    def show(self) -> None:
        """Draw the table as it is at this moment; the cursor stays on its row."""
        rows = uplink_rows(self._state)
        if rows == self._rows or not self._table.columns:  # it is not mounted yet
            return
        cursor, self._rows = self._table.cursor_row, rows
        self._table.clear()
        for row in rows:
            name, *cells = row.cells
            shown = (name, state_content(row.state).plain, *cells)
            self._table.add_row(*map(Text, shown))  # in a str brackets would be markup
        self._table.move_cursor(row=cursor)

    def action_order(self) -> None:
        """Ask for the uplink at the cursor to be paused, or resumed if it is paused."""
        if self._table.cursor_row < len(self._rows):
            row = self._rows[self._table.cursor_row]
            self.post_message(self.Ordered(word_for(row.state), row.name))


def uplink_rows(state: GatewayState) -> list[Row]:
    """Return the uplinks by name, or the only one."""
    named = state.uplinks()
    if named:
        return [_row(name, name, told, told.get("waiting", "0")) for name, told in named.items()]
    told = state.every_figure.of_part("uplink")
    waiting = amount(state.count(figures.OUTBOX_ROWS))
    return [_row("", ONLY, told, waiting)] if told.get("state") else []


def _row(name: str, shown: str, told: dict[str, str], waiting: str) -> Row:
    counts = (told.get(each, "0") for each in ("inflight", "acknowledged", "resent"))
    reason = f"! {told['error']}" if told.get("error") else told.get("destination", "")
    return Row(name, told.get("state", ""), (shown, waiting, *counts, fit(reason, REASON)))
