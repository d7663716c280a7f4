"""The colours: sea and sand, dark and light; and what a style's name means in a theme."""

import os
from collections.abc import Mapping

from rich.color import Color
from rich.style import Style
from textual.theme import Theme

from tui.line import AT_CURSOR

TIDE = Theme(
    name="tide",
    primary="#45b5c4",
    secondary="#2b6c7c",
    accent="#f0c674",
    foreground="#d5e2e6",
    background="#0b1418",
    surface="#0f1b20",
    panel="#1d3640",
    success="#7ec98f",
    warning="#e9a94b",
    error="#ef6f6c",
    dark=True,
    variables={"text-muted": "#86a0a9"},
)
TIDE_LIGHT = Theme(
    name="tide-light",
    primary="#0b6b7a",
    secondary="#7fb3bd",
    accent="#8a5a00",
    foreground="#14262c",
    background="#f6f4ec",
    surface="#edeae0",
    panel="#cfe3e6",
    success="#1d7034",
    warning="#965400",
    error="#b3261e",
    dark=False,
    variables={"text-muted": "#55686f"},
)

NAMES = {
    "text": ("foreground", False),
    "muted": ("text-muted", False),
    "border": ("secondary", False),
    "head": ("primary", True),
    "good": ("success", False),
    "warn": ("warning", False),
    "bad": ("error", True),
    "accent": ("accent", False),
    "key": ("accent", True),
    "plot": ("primary", False),
    "plot2": ("warning", False),
    "big": ("accent", True),
    "tab": ("text-muted", False),
    "tab_on": ("accent", True),
}
"""the colour of each style, and whether it is bold"""
COLOURS = {colour for colour, _ in NAMES.values()} | {"background", "panel"}
"""the colours of a Textual theme that are used"""
ANSI = {
    "text": "default", "muted": "bright_black", "border": "cyan", "head": "bold cyan",
    "good": "green", "warn": "yellow", "bad": "bold red", "accent": "bright_yellow",
    "key": "bold yellow", "plot": "bright_cyan", "plot2": "yellow", "big": "bold yellow",
    "tab": "default", "tab_on": "bold reverse", "alert": "bold white on red",
    "caution": "black on yellow", "caret": "reverse",
    "cursor": "black on cyan",
}  # fmt: skip
"""styles where the terminal has 16 colours of its own"""
FRAMES = "╭╮╰╯┬└├┤"
SIGNS = "●◐◌◔✕○‖▌▾▸▶⏎·…•✔▓░▲▼—°µ←→↑↓│─▁▂▃▄▅▆▇█▀"
SIGNS_IN_ASCII = "*%o@x.=|v>>~..*v#.^v-'u<>^v|-_.-=+*#H^"
UPPER_DOTS = 0x1B
"""the dots in the upper half of a braille character"""


def _dots(bits: int) -> str:
    upper, lower = bits & UPPER_DOTS, bits & ~UPPER_DOTS
    return ":" if upper and lower else "'" if upper else "."


ASCII = {
    **dict.fromkeys(map(ord, FRAMES), "+"),
    **{ord(sign): other for sign, other in zip(SIGNS, SIGNS_IN_ASCII, strict=True)},
    **{0x2800 + bits: _dots(bits) for bits in range(1, 0x100)},
}
"""what stands for signs where the terminal's font has only ASCII"""


class Palette:
    """Styles by name, computed once for a theme."""

    def __init__(self, variables: Mapping[str, str] | None) -> None:
        self._variables = variables
        self._styles: dict[str, Style] = {}

    def style(self, name: str) -> Style:
        """Return what a style's name means."""
        found = self._styles.get(name)
        if found is None:
            found = self._styles[name] = self._make(name)
        return found

    def _make(self, name: str) -> Style:
        base = name.removesuffix(AT_CURSOR)
        if self._variables is None:
            style = Style.parse(ANSI.get(base, "default"))
            return Style.parse(ANSI["cursor"]) if name.endswith(AT_CURSOR) else style
        get = self._variables.__getitem__
        ground = get("panel") if name.endswith(AT_CURSOR) else get("background")
        if base in ("alert", "caution"):
            colour = get("error" if base == "alert" else "warning")
            return Style(color=get("background"), bgcolor=colour, bold=True)
        if base == "caret":
            return Style(color=get("background"), bgcolor=get("accent"))
        colour, bold = NAMES.get(base, NAMES["text"])
        return Style(color=_hex(get(colour)), bgcolor=_hex(ground), bold=bold)


def _hex(colour: str) -> Color:
    return Color.parse(colour)


def ascii_only() -> bool:
    """Return whether the terminal is likely to show only ASCII: a Linux console, or no UTF-8."""
    if os.environ.get("TERM") == "linux":
        return True
    locale = next(
        (os.environ[each] for each in ("LC_ALL", "LC_CTYPE", "LANG") if os.environ.get(each)), ""
    )
    return bool(locale) and "utf" not in locale.casefold() and locale not in ("C", "POSIX")
