"""The bridges and what came in through them."""

from textual.content import Content

from tui import figures
from tui.signs import state_content
from tui.state import GatewayState, Port
from tui.text import amount, fit, rate
from tui.widgets.live import Live
from tui.widgets.pairs import pair_lines

COUNTED = (
    ("duplicates", figures.SERIAL_DUPLICATES),
    ("rejected", figures.SERIAL_REJECTED),
    ("CRC errors", figures.SERIAL_CRC_ERRORS),
)


class Bridges(Live):
    """A line for each bridge with its state, the reason below it, and the bridges' counts."""

    def __init__(self) -> None:
        super().__init__(id="bridges", classes="panel")
        self.border_title = "Bridges"

    def show(self, state: GatewayState) -> None:
        """Draw the bridges and counts."""
        if not state.ports:
            self.put(Content.styled("no bridge", "$text-muted"))
            return
        width = self.content_size.width
        ports = [_port(name, port, width) for name, port in sorted(state.ports.items())]
        pairs = [("readings", rate(state.rates.get(figures.BRIDGE_READINGS)))]
        for label, name in COUNTED:
            if count := state.count(name):
                pairs.append((label, amount(count)))
        self.put(Content("\n").join([*ports, pair_lines(pairs, width)]))


def _port(name: str, port: Port, width: int) -> Content:
    line = Content.assemble((f"{name} ", "bold"), state_content(port.state))
    if port.error and port.state != "open":
        line += Content.assemble(("\n" + fit(f"  {port.error}", width), "$text-warning"))
    return line
