"""The sensors and the line in which they are filtered."""

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.widgets import Input, Static

from tui.state import GatewayState
from tui.widgets.sensor_table import SensorTable


class SensorPanel(Vertical):
    """A framed table with a filter line that is there only while it is used."""

    def __init__(self, state: GatewayState) -> None:
        super().__init__(id="sensors", classes="panel")
        self._state = state
        self._table = SensorTable(state)
        self._filter = Input(
            placeholder="words of the topic; enter: keep, escape: all",
            compact=True,
            id="sensor-filter",
        )
        self._filter_line = Horizontal(Static("/ "), self._filter, id="filter-line")

    def compose(self) -> ComposeResult:
        """Yield the table and, below it, the filter."""
        yield self._table
        yield self._filter_line

    def on_mount(self) -> None:
        """Hide the filter until it is asked for."""
        self._filter_line.display = False

    def show(self, now: float, dropped_unseen: int) -> None:
        """Draw the table; `dropped_unseen` counts messages that came too fast to be looked at."""
        self._table.show(now)
        sensors = self._state.sensors
        title = f"Sensors {len(sensors):,}"
        if self._filter.value:
            title = f"Sensors {len(self._table.topics):,} of {len(sensors):,}"
        if self.border_title != title:
            self.border_title = title
        losses = (
            ("sensors dropped", sensors.dropped),
            ("topics too long", sensors.refused),
            ("messages skipped", dropped_unseen),
        )
        subtitle = " · ".join(f"{count:,} {what}" for what, count in losses if count)
        if self.border_subtitle != subtitle:
            self.border_subtitle = subtitle

    def open_filter(self) -> None:
        """Show the filter and let the keyboard write to it."""
        self._filter_line.display = True
        self.screen.set_focus(self._filter)  # at once, so that no quick key is lost

    def close_filter(self) -> None:
        """Show all sensors again."""
        self._filter.value = ""
        self._filter_line.display = False
        self._table.focus()

    @on(Input.Changed)
    def _on_typed(self, event: Input.Changed) -> None:
        self._table.filter(event.value)

    @on(Input.Submitted)
    def _on_entered(self) -> None:
        self._filter_line.display = bool(self._filter.value)
        self._table.focus()
