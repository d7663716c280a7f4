"""The last lines of the gateway's log and of what happened to our connection."""

from typing import ClassVar

from rich.style import Style
from rich.text import Text
from textual import events
from textual.widgets import RichLog

from tui.state import MAX_LOG_LINES, GatewayState, LogLine
from tui.text import fit, time_of_day

MOST_AT_ONCE = 50
"""lines written in one update; of more, only the newest are"""
LEVEL_WIDTH = 8
SAME_STYLE = {"critical": "error", "warn": "warning"}


class LogPane(RichLog):
    """Follows the newest line unless it was scrolled up; wraps lines again at a resize."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "log-pane--time",
        "log-pane--warning",
        "log-pane--error",
    }

    def __init__(self, state: GatewayState) -> None:
        super().__init__(
            id="log", classes="panel", wrap=True, min_width=20, max_lines=MAX_LOG_LINES
        )
        self.border_title = "Log"
        self._state = state
        self._written = 0
        self._width = 0

    def show(self) -> None:
        """Write the lines that came since the last time."""
        new = min(self._state.logged - self._written, MOST_AT_ONCE, len(self._state.log))
        self._written = self._state.logged
        if new:
            self._write_last(new)

    def on_resize(self, event: events.Resize) -> None:
        """Wrap the lines to the new width; Textual calls the base class's handler after this."""
        if event.size.width != self._width:
            self._width = event.size.width
            self.clear()
            self._written = self._state.logged
            self._write_last(len(self._state.log))

    def _write_last(self, count: int) -> None:
        follow = self.is_vertical_scroll_end
        for line in list(self._state.log)[len(self._state.log) - count :]:
            self.write(self._text(line), scroll_end=follow)

    def _text(self, line: LogLine) -> Text:
        level = line.level or "info"
        return Text.assemble(
            (f"{time_of_day(line.time)} ", self._style("time")),
            (f"{fit(level, LEVEL_WIDTH)}", self._style(level)),
            (f"{_room(line.logger)} ", self._style("time")),
            line.message,
        )

    def _style(self, part: str) -> Style:
        name = f"log-pane--{SAME_STYLE.get(part, part)}"
        if name not in self.COMPONENT_CLASSES:
            return Style.null()
        return self.get_component_rich_style(name, partial=True)


def _room(logger: str) -> str:
    """Return which part of the gateway speaks: the whole name of its module would fill a line."""
    return logger.removeprefix("gateway.").partition(".")[0]
