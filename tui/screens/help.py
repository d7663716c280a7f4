"""The keys and the signs."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

KEYS = (
    ("q", "quit"),
    ("p", "pause or resume the uplinks; messages wait meanwhile"),
    ("/", "filter the sensors by words of their topics"),
    ("escape", "close what is open; show all sensors again"),
    ("tab", "move between sensors, bridges and log"),
    ("↑ ↓ j k", "move in the sensors; page up, page down, home and end too"),
    ("enter", "all about the sensor at the cursor"),
    ("f", "every figure that the gateway tells of itself"),
    ("c", "the channels, and what waits in them"),
    ("u", "the uplinks; p pauses or resumes one of them"),
    ("z", "give the whole screen to the sensors or to the log, and back"),
    ("r", "try now to connect again"),
    ("ctrl+p", "more: colours, screenshot"),
    ("?", "this help"),
)
SIGNS = (
    ("•", "heard within the last second"),
    ("!", "late: silent for three times as long as usual, and 30 s at least"),
    ("—", "not known (yet): rates need two refreshes of the gateway's figures"),
    ("● ◐ ◌", "up · being set up · waiting"),
    ("‖ ✕ ○", "paused · down · off"),
    ("▲ ▼", "the outbox grows · drains"),
)


class Help(ModalScreen[None]):
    """A box over the dashboard; any of its keys closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark,enter,q", "dismiss", "Close")
    ]

    def compose(self) -> ComposeResult:
        """Yield the box."""
        with VerticalScroll(id="help") as box:
            box.border_title = "Keys and signs"
            box.border_subtitle = "escape: close"
            yield Static(_table(KEYS), markup=False)
            yield Static(_table(SIGNS), markup=False, id="help-signs")


def _table(rows: tuple[tuple[str, str], ...]) -> Content:
    lines = [Content.assemble((f"{sign:<9}", "bold $text-accent"), text) for sign, text in rows]
    return Content("\n").join(lines)
