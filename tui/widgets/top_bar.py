"""The first line: which gateway this is and how our connection to it stands."""

from textual.content import Content

from tui import figures
from tui.link import Link
from tui.signs import state_content
from tui.state import GatewayState
from tui.text import span, time_of_day
from tui.widgets.live import Live

WIDE = 78
"""cells from which on everything fits"""


class TopBar(Live):
    """Name, version and uptime of the gateway, the connection and the time of day."""

    def __init__(self, address: str) -> None:
        super().__init__(id="top-bar")
        self._address = address

    def show(self, state: GatewayState, link: Link, now: float) -> None:
        """Draw the line for this moment."""
        width = self.size.width
        name = state.word(figures.GATEWAY_ID) or "gateway"
        left = Content.assemble((" TIDEGATE ", "bold reverse"), (f" {name} ", "bold"))
        if width >= WIDE:
            left += Content.assemble((f"{state.word(figures.VERSION)} ", "$text-muted"))
        left += state_content(link.phase.value)
        if width >= WIDE:
            left += Content.assemble((f" {self._address}", "$text-muted"))
        up = f"up {span(state.uptime)} " if state.uptime is not None else ""
        right = Content.assemble((f"{up}{time_of_day(now)} ", "$text-muted"))
        gap = width - left.cell_length - right.cell_length
        self.put(left + " " * gap + right if gap > 0 else left)
