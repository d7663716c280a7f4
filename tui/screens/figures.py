"""Every figure that the gateway tells of itself."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen

from tui.state import GatewayState
from tui.widgets.live import Live
from tui.widgets.pairs import pair_lines

NOTHING = "The gateway has told nothing yet."


class Figures(ModalScreen[None]):
    """The parts of the gateway with their figures, as long as the list is; escape leads back."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,f,enter,q", "dismiss", "Back")]

    def __init__(self, state: GatewayState) -> None:
        super().__init__()
        self._state = state
        self._lines = Live(id="figures-lines")
        self._box = VerticalScroll(self._lines, id="figures")
        self._box.border_title = "Figures"
        self._box.border_subtitle = "escape: back"

    def compose(self) -> ComposeResult:
        """Yield the box with the list."""
        yield self._box

    def show(self) -> None:
        """Draw the list as it is at this moment."""
        width = self._lines.content_size.width
        parts = [
            Content("\n").join(
                [Content.assemble((part, "bold $primary")), pair_lines(pairs, width)]
            )
            for part, pairs in self._state.every_figure.parts()
        ]
        self._lines.put(Content("\n\n").join(parts) if parts else Content(NOTHING))
