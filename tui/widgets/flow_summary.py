"""The flow in three lines, for a terminal too small for boxes."""

from textual.content import Content

from tui import figures
from tui.signs import state_content
from tui.state import GatewayState
from tui.text import amount, rate, span
from tui.widgets.flow import tendency
from tui.widgets.live import Live


class FlowSummary(Live):
    """Sensors and broker, outbox, fleet: a line each."""

    def __init__(self) -> None:
        super().__init__(id="flow-summary")

    def show(self, state: GatewayState) -> None:
        """Draw the figures of this moment."""
        rates, count = state.rates, state.count
        broker = f"in {rate(state.incoming())} out {rate(rates.get(figures.SENT))}"
        rows = f"{amount(count(figures.OUTBOX_ROWS))} rows {tendency(state)}".rstrip()
        oldest = span(count(figures.OUTBOX_OLDEST)) if count(figures.OUTBOX_ROWS) else "—"
        fleet = state_content(state.word(figures.UPLINK_STATE))
        delivered = f" {rate(rates.get(figures.UPLINK_ACKNOWLEDGED))}"
        error = state.word(figures.UPLINK_ERROR)
        self.put(
            Content.assemble(
                f"{len(state.sensors):,} sensors ▶ {broker}\n",
                f"▶ outbox {rows}, oldest {oldest}\n",
                ("▶ fleet ", ""),
                fleet,
                f" {error}" if error else delivered,
            )
        )
