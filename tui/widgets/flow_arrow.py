"""The arrow between two boxes of the flow: whether and how fast messages pass."""

from textual.content import Content

from tui.text import brief_rate
from tui.widgets.live import Live

FRAMES = ("━╺━▶", "━━╺▶", "╺━━▶")
IDLE = "───▷"
STOPPED = {
    "paused": "─‖ ▷",
    "waiting": "─◌ ▷",
    "disconnected": "─✕ ▷",
    "connecting": "╌╌╌▷",
    "off": "─○ ▷",
}


class FlowArrow(Live):
    """An arrow that moves while messages pass, with their rate above."""

    def __init__(self, *, id: str) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id, classes="arrow")

    def show(self, each_second: float | None, now: float, stopped: str = "") -> None:
        """Draw the arrow; `stopped` is the state word of a link that lets nothing pass."""
        label = brief_rate(each_second) if each_second is not None else ""
        if stopped:
            body, style = STOPPED.get(stopped, IDLE), "$text-warning"
        elif each_second:
            body, style = self._frame(now), "$text-success"
        else:
            body, style = IDLE, "$text-muted"
        self.put(
            Content.assemble((f"{label:^6}\n", "$text-muted"), (f"{body:^6}", f"bold {style}"))
        )

    def _frame(self, now: float) -> str:
        if self.app.animation_level == "none":
            return FRAMES[0]
        return FRAMES[int(now * 4) % len(FRAMES)]
