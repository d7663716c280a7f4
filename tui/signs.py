"""The sign and the colour of each state word; the word itself is always shown beside them."""

from textual.content import Content

from tui.text import UNKNOWN

SIGNS = {
    "connected": ("●", "$text-success"),
    "open": ("●", "$text-success"),
    "connecting": ("◐", "$text-warning"),
    "waiting": ("◌", "$text-warning"),
    "silent": ("◔", "$text-warning"),
    "paused": ("‖", "$text-warning"),
    "disconnected": ("✕", "$text-error"),
    "off": ("○", "$text-muted"),
}
UNKNOWN_SIGN = ("?", "$text-muted")


def state_content(word: str) -> Content:
    """Return a state with its sign, as `● connected`."""
    sign, colour = SIGNS.get(word, UNKNOWN_SIGN)
    return Content.assemble((f"{sign} {word or UNKNOWN}", f"bold {colour}"))
