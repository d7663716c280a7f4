"""The sign and the style of each state word; the word itself is always shown beside them."""

from tui.line import Piece
from tui.text import UNKNOWN

SIGNS = {
    "connected": ("●", "good"),
    "open": ("●", "good"),
    "up": ("●", "good"),
    "connecting": ("◐", "warn"),
    "waiting": ("◌", "warn"),
    "silent": ("◔", "warn"),
    "paused": ("‖", "warn"),
    "disconnected": ("✕", "bad"),
    "offline": ("○", "muted"),
    "off": ("○", "muted"),
}
UNKNOWN_SIGN = ("?", "muted")


def state_cell(word: str) -> Piece:
    """Return a state with its sign, as `● connected`."""
    sign, style = SIGNS.get(word, UNKNOWN_SIGN)
    return f"{sign} {word or UNKNOWN}", style


SEVERITIES = {"error": ("✕", "bad"), "warning": ("!", "warn"), "info": (" ", "text")}


def severity(word: str) -> Piece:
    """Return the sign of a severity."""
    return SEVERITIES.get(word, (" ", "text"))
