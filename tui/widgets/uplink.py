"""The counts of the way to the fleet."""

from tui import figures
from tui.state import GatewayState
from tui.text import amount, fit, long_span, outage, size
from tui.widgets.live import Live
from tui.widgets.pairs import pair_lines

SHOWN = (
    ("in flight", figures.UPLINK_INFLIGHT),
    ("acknowledged", figures.UPLINK_ACKNOWLEDGED),
    ("resent", figures.UPLINK_RESENT),
    ("refused", figures.UPLINK_REFUSED),
    ("filtered", figures.RULES_FILTERED),
    ("backlog a second", figures.UPLINK_PACE),
    ("reconnections", figures.UPLINK_RECONNECTS),
    ("outbox full", figures.OUTBOX_REJECTED),
    ("not yet on disk", figures.STORAGE_PENDING),
    ("failed commits", figures.STORAGE_FAILURES),
    ("dropped", figures.DROPPED),
)


class Uplink(Live):
    """Several uplinks by name, then name and count, as many as there is room for."""

    def __init__(self) -> None:
        super().__init__(id="uplink", classes="panel")
        self.border_title = "Uplink"

    def show(self, state: GatewayState) -> None:
        """Draw the counts."""
        pairs = [(label, amount(state.count(name))) for label, name in SHOWN]
        pairs.append(("outbox size", size(state.count(figures.OUTBOX_BYTES))))
        pairs.append(("survives offline", outage(state.counts.get(figures.OUTBOX_SURVIVES))))
        pairs.append(("then drains in", outage(state.counts.get(figures.OUTBOX_DRAINS))))
        pairs.append(("saved by rules", size(state.count(figures.RULES_SAVED))))
        pairs.append(("written a day", size(state.count(figures.STORAGE_WRITTEN_PER_DAY))))
        pairs.append(("card lasts", long_span(state.count(figures.STORAGE_CARD_DAYS))))
        if budget := state.count(figures.UPLINK_BUDGET):
            used = state.count(figures.UPLINK_BUDGET_USED) or 0
            pairs.insert(0, ("used today", f"{size(used)} of {size(budget)}"))
        width = self.content_size.width
        pairs[:0] = [_pair_of(name, told, width) for name, told in state.uplinks().items()]
        self.put(pair_lines(pairs, width))


def _pair_of(name: str, told: dict[str, str], width: int) -> tuple[str, str]:
    """Return what one of several uplinks does, and how many messages wait for it."""
    figure = f"{told['state']}, {told.get('waiting', '0')} wait"
    return fit(name, max(1, width - len(figure) - 1)), figure
