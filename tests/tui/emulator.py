"""The little of a terminal that the screen needs: moves, styles, characters."""

import re

TOKEN = re.compile(
    r"\x1b\[(\d+);(\d+)H"
    r"|\x1b\[([0-9;]*)m"
    r"|\x1b(?:\[[0-9;?<>=$ ]*[a-zA-Z]|\][^\x07]*\x07|P[^\x1b]*\x1b\\)"
    r"|([\r\n])"
    r"|(.)",
    re.DOTALL,
)
Screen = dict[tuple[int, int], tuple[str, str]]
"""characters with their styles, by line and column"""


def show(written: str, screen: Screen) -> None:
    """Put what is written on a screen."""
    y = x = 0
    style = ""
    for line, column, codes, end, character in TOKEN.findall(written):
        if line:
            y, x = int(line) - 1, int(column) - 1
        elif end:
            y, x = (y + 1, x) if end == "\n" else (y, 0)
        elif character:
            screen[y, x] = character, style
            x += 1
        elif codes:
            style = codes.removeprefix("0;").removeprefix("0")


def text_of(screen: Screen) -> str:
    """Return a screen's lines."""
    height = max((y for y, _ in screen), default=-1) + 1
    rows: list[dict[int, str]] = [{} for _ in range(height)]
    for (y, x), (character, _) in screen.items():
        rows[y][x] = character
    return "\n".join(
        "".join(row.get(x, " ") for x in range(max(row, default=0) + 1)) for row in rows
    )
