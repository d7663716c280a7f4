"""`tidegate tui`: a gateway on the screen, seen as a plain MQTT client sees it."""

import sys
import time
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import App
from textual.binding import Binding, BindingType

from tui.address import DEFAULT_URL, Address, AddressError, parse_address
from tui.clock import now
from tui.gateway_client import GatewayClient
from tui.link import Link, Phase
from tui.messages import LinkChanged, OrderAnswered, SubscriptionRefused
from tui.screens.channels import Channels
from tui.screens.dashboard import Dashboard
from tui.screens.figures import Figures
from tui.screens.help import Help
from tui.screens.sensor_detail import SensorDetail
from tui.screens.uplinks import Uplinks
from tui.state import GatewayState
from tui.theme import TIDE
from tui.topics import GATEWAY, Topics
from tui.uplink_order import PAUSED, UplinkOrder, word_for
from tui.widgets.sensor_table import SensorTable

TICK = 0.25
"""seconds between two updates of the screen"""
MOST_WORK = 0.06
"""seconds of a tick in which arrivals are taken; the rest stays in the bounded inbox"""

NOTE = 3.0
"""seconds that a note about an order stays"""
WIDTHS = ((0, "-narrow"), (76, "-normal"), (110, "-wide"))
"""cells from which the screen has this class; what it shows then is in tui.tcss"""
HEIGHTS = ((0, "-short"), (20, "-medium"), (32, "-tall"))
"""lines from which the screen has this class"""


class TidegateApp(App[None]):
    """Joins the connection, the state and the screens; everything is drawn once a tick."""

    CSS_PATH = "tui.tcss"
    TITLE = "Tidegate"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "Quit"),
        Binding("p", "order_uplink('pause')", "Pause uplink"),
        Binding("p", "order_uplink('resume')", "Resume uplink"),
        Binding("f", "figures", "Figures"),
        Binding("c", "channels", "Channels"),
        Binding("u", "uplinks", "Uplinks"),
        Binding("r", "retry", "Retry now"),
        Binding("question_mark", "help", "Help", key_display="?"),
    ]

    def __init__(self, address: Address, topics: Topics = GATEWAY) -> None:
        super().__init__()
        self.HORIZONTAL_BREAKPOINTS = list(WIDTHS)
        self.VERTICAL_BREAKPOINTS = list(HEIGHTS)
        self.state = GatewayState(topics.root)
        self.client = GatewayClient(address, self.post_message, topics)
        self._address = str(address)
        self._link = Link(Phase.CONNECTING)
        self._last_connected: float | None = None
        self._order: UplinkOrder | None = None
        self._was_paused = False

    def on_mount(self) -> None:
        """Show the dashboard and begin to connect."""
        self.register_theme(TIDE)
        self.theme = TIDE.name
        self.push_screen(Dashboard(self.state, self._address))
        self.set_interval(TICK, self._tick)
        self.client.start()

    def on_unmount(self) -> None:
        """Leave the gateway."""
        self.client.stop()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer `pause` or `resume`, whichever can have an effect, and `retry` while it waits."""
        if action == "order_uplink":
            return parameters == (word_for(self.state.uplink_state()),)
        if action == "retry":
            return self._link.phase is Phase.WAITING
        return True

    def action_help(self) -> None:
        """Show the keys and signs."""
        if not isinstance(self.screen, Help):
            self.push_screen(Help())

    def action_figures(self) -> None:
        """Show every figure that the gateway tells."""
        if not isinstance(self.screen, Figures):
            self.push_screen(Figures(self.state))

    def action_channels(self) -> None:
        """Show the channels."""
        if not isinstance(self.screen, Channels):
            self.push_screen(Channels(self.state))

    def action_uplinks(self) -> None:
        """Show the uplinks one by one."""
        if not isinstance(self.screen, Uplinks):
            self.push_screen(Uplinks(self.state))

    def action_retry(self) -> None:
        """Try now to connect again."""
        self.client.retry_now()

    def action_order_uplink(self, word: str, name: str = "") -> None:
        """Order all uplinks or one to pause or resume, and follow what comes of it."""
        if self._link.phase is not Phase.CONNECTED:
            self._tell("warning", f"no connection: no order to {word} was sent")
        elif self._order is None:
            self._order = UplinkOrder(word, now(), name)
            self.client.order_uplink(word, name)
            self.state.note("info", f"ordered {self._order.uplink} to {word}", now())

    @on(SensorTable.Opened)
    def _on_sensor_opened(self, event: SensorTable.Opened) -> None:
        self.push_screen(SensorDetail(self.state, event.topic))

    @on(Uplinks.Ordered)
    def _on_uplink_ordered(self, event: Uplinks.Ordered) -> None:
        self.action_order_uplink(event.word, event.name)

    @on(SubscriptionRefused)
    def _on_subscription_refused(self, event: SubscriptionRefused) -> None:
        self._tell(
            "error", f"the gateway does not let us hear {event.topic_filter}: {event.reason}"
        )

    @on(OrderAnswered)
    def _on_order_answered(self, event: OrderAnswered) -> None:
        if self._order is not None and event.refusal:
            self._order.refused(event.refusal)

    @on(LinkChanged)
    def _on_link_changed(self, event: LinkChanged) -> None:
        before, link = self._link, event.link
        self._link = link
        if link.phase is Phase.CONNECTED:
            self.state.begin(now())
            self.client.subscribe()
            self.state.note("info", f"connected to {self._address}", now())
        elif before.phase is Phase.CONNECTED or link.reason != before.reason:
            self.state.note("warning", f"no connection: {link.reason}", now())
        if link.phase is not Phase.CONNECTED:
            self.state.sensors.stop_listening(now())
            if self._order is not None:
                self._order.lost()
        self._renew_keys()

    def _tick(self) -> None:
        moment = now()
        if self._link.phase is Phase.CONNECTED:
            self._last_connected = moment
        self._take_arrivals()
        self.state.settle(moment, self.client.heard)
        self._follow_order(moment)
        paused = self.state.uplink_state() == PAUSED
        if paused is not self._was_paused:
            self._was_paused = paused
            self._renew_keys()
        self._show(moment)

    def _take_arrivals(self) -> None:
        """Apply what has arrived, the gateway's own figures first, for a bounded time."""
        end = time.monotonic() + MOST_WORK
        for inbox in (self.client.figures, self.client.readings):
            while time.monotonic() < end and (arrival := inbox.take()) is not None:
                topic, payload, retained, at = arrival
                self.state.apply(topic, payload, at, retained=retained)

    def _follow_order(self, moment: float) -> None:
        order = self._order
        if order is None:
            return
        order.look(self.state.uplink_state(order.name), moment)
        if order.outcome:
            self._order = None
            self._tell("info" if order.done else "warning", order.outcome)

    def _renew_keys(self) -> None:
        """Offer the keys that now have an effect."""
        if self.screen_stack:  # empty while the application ends
            self.refresh_bindings()

    def _show(self, moment: float) -> None:
        skipped = self.client.figures.dropped + self.client.readings.dropped
        for screen in self.screen_stack:
            if isinstance(screen, Dashboard):
                screen.show(self._link, self._last_connected, skipped, moment)
            elif isinstance(screen, SensorDetail):
                screen.show(moment)
            elif isinstance(screen, Figures | Channels | Uplinks):
                screen.show()

    def _tell(self, level: str, text: str) -> None:
        """Say something in the log and in a note that goes away by itself."""
        self.state.note(level, text, now())
        self.notify(
            text,
            severity="information" if level == "info" else "warning",
            timeout=NOTE,
            markup=False,
        )


def run(
    url: str = DEFAULT_URL,
    username: str | None = None,
    password_file: Path | None = None,
    ca_file: Path | None = None,
) -> int:
    """Show the gateway at `url` until the person quits; return the exit status.

    It is 2, with one line on standard error, if the address or a file cannot be used or there is
    no terminal; see `tui.address.parse_address` for the login.
    """
    try:
        address = parse_address(url, username, password_file, ca_file)
    except AddressError as problem:
        sys.stderr.write(f"tidegate tui: {problem}\n")
        return 2
    if not (sys.stdin.isatty() and sys.stderr.isatty()):  # Textual draws on standard error
        sys.stderr.write("tidegate tui: standard input and error must be a terminal\n")
        return 2
    application = TidegateApp(address)
    application.run()
    return application.return_code or 0
