"""The table of sensors: only the rows on the screen are ever computed."""

from bisect import bisect_left
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from tui.state import GatewayState
from tui.widgets.sensor_columns import Row, columns_for, heading, row_of

HEADING_LINES = 1


class SensorTable(ScrollView, can_focus=True):
    """Sensors by name, with a cursor; the heading stays while the rows scroll."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "sensor-table--heading",
        "sensor-table--cursor",
        "sensor-table--late",
        "sensor-table--fresh",
        "sensor-table--value",
        "sensor-table--quiet",
        "sensor-table--trend",
    }
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "Up", show=False),
        Binding("down,j", "move(1)", "Down", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("pagedown", "page(1)", "Page down", show=False),
        Binding("home,g", "first", "First", show=False),
        Binding("end,G", "last", "Last", show=False),
        Binding("enter", "open", "Details"),
    ]

    class Opened(Message):
        """The person wants to see all of one sensor."""

        def __init__(self, topic: str) -> None:
            super().__init__()
            self.topic = topic

    def __init__(self, state: GatewayState) -> None:
        super().__init__(id="sensor-table")
        self.topics: list[str] = []
        """the topics of the rows, sorted"""
        self.cursor = 0
        """the row of the cursor"""
        self._state = state
        self._words = ""
        self._revision = -1
        self._now = 0.0
        self._drawn: list[Row | None] = []
        self._rows_before = 1

    def filter(self, words: str) -> None:
        """Show only sensors whose topics contain each of these words."""
        self._words = words
        self._revision = -1
        self.show(self._now)

    def show(self, now: float) -> None:
        """Draw the table for this moment, if anything on the screen differs."""
        self._now = now
        changed = self._renew()
        drawn = [self._row(line) for line in range(HEADING_LINES, self.size.height)]
        if changed or drawn != self._drawn:
            self._drawn = drawn
            self.refresh()

    def render_line(self, y: int) -> Strip:
        """Return one line: the heading, a sensor or nothing."""
        width = self._width
        if y < HEADING_LINES:
            return self._heading(width)
        row = self._row(y)
        if row is not None:
            index = self._index(y)
            return self._strip(row, at_cursor=index == self.cursor and self.has_focus)
        return Strip([Segment(self._remark(y), self._style("quiet"))]).adjust_cell_length(
            width, self.rich_style
        )

    def on_resize(self) -> None:
        """Keep the cursor on the screen, if it was there: the mouse may have scrolled away."""
        rows, self._rows_before = self._rows_before, self._rows
        if 0 <= self.cursor - self.scroll_offset.y < rows:
            self._put_cursor(self.cursor)

    def on_click(self, event: events.Click) -> None:
        """Move the cursor to the clicked row; open it at a double click."""
        index = self._index(event.y)
        if event.y < HEADING_LINES or index >= len(self.topics):
            return
        self._put_cursor(index)
        if event.chain == 2:
            self.action_open()

    def action_move(self, rows: int) -> None:
        """Move the cursor by some rows."""
        self._put_cursor(self.cursor + rows)

    def action_page(self, pages: int) -> None:
        """Move the cursor by screenfuls."""
        self._put_cursor(self.cursor + pages * max(1, self._rows - 1))

    def action_first(self) -> None:
        """Move the cursor to the first row."""
        self._put_cursor(0)

    def action_last(self) -> None:
        """Move the cursor to the last row."""
        self._put_cursor(len(self.topics) - 1)

    def action_open(self) -> None:
        """Ask for the details of the row at the cursor."""
        if self.cursor < len(self.topics):
            self.post_message(self.Opened(self.topics[self.cursor]))

    def _renew(self) -> bool:
        """Take over a changed set of topics; the cursor stays at the top or on its sensor."""
        sensors = self._state.sensors
        if self._revision == sensors.revision:
            return False
        self._revision = sensors.revision
        before = self.topics[self.cursor] if 0 < self.cursor < len(self.topics) else ""
        self.topics = sensors.matching(self._words)
        self.virtual_size = Size(self._width, len(self.topics) + HEADING_LINES)
        index = bisect_left(self.topics, before) if before else 0
        if self._in_view(self.cursor):
            self._put_cursor(index)
        else:  # scrolled away from by mouse: do not pull the view back
            self.cursor = index
        return True

    def _put_cursor(self, index: int) -> None:
        self.cursor = max(0, min(index, len(self.topics) - 1))
        top = self.scroll_offset.y
        target = min(self.cursor, max(top, self.cursor - self._rows + 1))
        if target != top:  # by force: the scrollbar may not have been laid out yet
            self.scroll_to(y=target, animate=False, force=True)
        self.refresh()

    @property
    def _rows(self) -> int:
        """How many sensors fit on the screen."""
        return max(1, self.size.height - HEADING_LINES)

    def _in_view(self, index: int) -> bool:
        return 0 <= index - self.scroll_offset.y < self._rows

    @property
    def _width(self) -> int:
        """The cells of a row, without the scrollbar."""
        return self.scrollable_content_region.width

    def _index(self, y: int) -> int:
        return self.scroll_offset.y + y - HEADING_LINES

    def _row(self, y: int) -> Row | None:
        index = self._index(y)
        if not 0 <= index < len(self.topics):
            return None
        sensor = self._state.sensors.get(self.topics[index])
        if sensor is None:
            return None
        late = self._state.sensors.is_late(sensor, self._now)
        return row_of(sensor, columns_for(self._width), self._now, late=late)

    def _remark(self, y: int) -> str:
        if self.topics or y != HEADING_LINES + 1:
            return ""
        if self._words:
            return f"  no sensor matches {self._words!r} (escape: all)"
        return "  no sensor heard yet on sensors/#"

    def _style(self, part: str) -> Style:
        return self.get_component_rich_style(f"sensor-table--{part}", partial=True)

    def _heading(self, width: int) -> Strip:
        text = " " + " ".join(heading(columns_for(width)))
        return Strip([Segment(text, self._style("heading"))]).adjust_cell_length(
            width, self.rich_style
        )

    def _strip(self, row: Row, *, at_cursor: bool) -> Strip:
        base = self.rich_style
        if at_cursor:
            base += self._style("cursor")
        mark = base + self._style("late" if row.mark == "!" else "fresh")
        quiet = base + self._style("quiet")
        segments = [
            Segment("▌" if at_cursor else " ", base),
            Segment(row.mark + " ", mark),
            Segment(row.name + " ", mark if row.mark == "!" else base),
            Segment(row.value + " ", base + self._style("value")),
            Segment(row.unit + " ", quiet),
            Segment(row.age, mark if row.mark == "!" else quiet),
            Segment(" " + row.trend, base + self._style("trend")),
        ]
        return Strip(segments).adjust_cell_length(self._width, base)
