"""The channels of the gateway, and what waits in them."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen

from tui.state import GatewayState
from tui.text import fit
from tui.widgets.live import Live

PART = "channels"
NOTHING = "The gateway has no channels."
COLUMNS = (
    ("state", "state", 8),
    ("consumers", "consumers", 10),
    ("waiting", "depth", 10),
    ("in flight", "in_flight", 10),
    ("oldest", "oldest_seconds", 9),
    ("timed out", "timed_out", 10),
    ("p99", "latency_ms_p99", 10),
)
"""The head of a column, the figure in it, and its width in cells."""

NAME = 20
"""cells of a name"""


class Channels(ModalScreen[None]):
    """A line for each channel; escape leads back."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,c,enter,q", "dismiss", "Back")]

    def __init__(self, state: GatewayState) -> None:
        super().__init__()
        self._state = state
        self._lines = Live(id="channels-lines")
        self._box = VerticalScroll(self._lines, id="channels")
        self._box.border_title = "Channels"
        self._box.border_subtitle = "escape: back"

    def compose(self) -> ComposeResult:
        """Yield the box with the list."""
        yield self._box

    def show(self) -> None:
        """Draw the list as it is at this moment."""
        channels = self._state.every_figure.by_name(PART)
        head = f"{'channel':<{NAME}}" + "".join(f"{title:>{width}}" for title, _, width in COLUMNS)
        lines = [Content.styled(head, "bold $primary")]
        lines += [_line(name, figures) for name, figures in channels.items()]
        self._lines.put(Content("\n").join(lines) if channels else Content(NOTHING))


def _line(name: str, figures: dict[str, str]) -> Content:
    cells = "".join(
        f"{fit(figures.get(figure, ''), width - 1).rstrip():>{width}}"
        for _, figure, width in COLUMNS
    )
    style = "$text-warning" if figures.get("state") == "paused" else ""
    return Content.styled(f"{fit(name, NAME - 1):<{NAME}}{cells}", style)
