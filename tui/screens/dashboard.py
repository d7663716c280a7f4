"""The main screen: the flow of messages, sensors, bridges, uplink and log."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.screen import Screen
from textual.widgets import Footer

from tui.link import Link, Phase
from tui.state import GatewayState
from tui.widgets.alarm_bar import AlarmBar
from tui.widgets.bridges import Bridges
from tui.widgets.connection_banner import ConnectionBanner
from tui.widgets.flow import Flow
from tui.widgets.flow_summary import FlowSummary
from tui.widgets.log_pane import LogPane
from tui.widgets.sensor_panel import SensorPanel
from tui.widgets.top_bar import TopBar
from tui.widgets.uplink import Uplink


class Dashboard(Screen[None]):
    """Everything at a glance; laid out by the terminal's size (tui.tcss)."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", "Filter", key_display="/"),
        Binding("escape", "back", "All", show=False),
        Binding("z", "zoom", "Zoom"),
    ]

    def __init__(self, state: GatewayState, address: str) -> None:
        super().__init__()
        self._state = state
        self._top = TopBar(address)
        self._banner = ConnectionBanner(address)
        self._alarms = AlarmBar()
        self._flow = Flow()
        self._summary = FlowSummary()
        self._sensors = SensorPanel(state)
        self._bridges = Bridges()
        self._uplink = Uplink()
        self._log = LogPane(state)

    def compose(self) -> ComposeResult:
        """Yield the parts from top to bottom."""
        yield self._top
        yield self._banner
        yield self._alarms
        yield self._flow
        yield self._summary
        with Horizontal(id="middle"):
            yield self._sensors
            with VerticalScroll(id="side"):
                yield self._bridges
                yield self._uplink
        yield self._log
        yield Footer(show_command_palette=False)

    def show(self, link: Link, last_connected: float | None, skipped: int, now: float) -> None:
        """Draw everything for this moment; what did not change costs nothing."""
        connected = link.phase is Phase.CONNECTED
        self.set_class(not connected, "-stale")
        self._top.show(self._state, link, now)
        self._banner.show(link, last_connected, now)
        self._alarms.show(self._state.alarms)
        self._flow.show(self._state, now, connected=connected)
        self._summary.show(self._state)
        self._sensors.show(now, skipped)
        self._bridges.show(self._state)
        self._uplink.show(self._state)
        self._log.show()

    def action_filter(self) -> None:
        """Let the person type words that the sensors' topics must contain."""
        self.remove_class("-zoom-log")
        self._sensors.open_filter()

    def action_back(self) -> None:
        """Undo the zoom; if there is none, the filter."""
        if self.has_class("-zoom-log") or self.has_class("-zoom-sensors"):
            self.remove_class("-zoom-log", "-zoom-sensors")
        else:
            self._sensors.close_filter()

    def action_zoom(self) -> None:
        """Give the screen to the log if it is in use, else to the sensors; or take it back."""
        zoomed = "-zoom-log" if self._log.has_focus else "-zoom-sensors"
        self.toggle_class(zoomed)
