"""Lines of styled text, without a terminal: fitted, cut, put side by side, framed.

A line is a list of (text, style) pairs. A style is a word that `tui.theme` gives a colour to.
"""

from collections.abc import Iterable, Sequence

from rich.cells import cell_len, set_cell_size

from tui.text import REPLACEMENT, fit

Piece = tuple[str, str]
Line = list[Piece]

TEXT = "text"
MUTED = "muted"
BORDER = "border"
HEAD = "head"
AT_CURSOR = "@"
"""the end of a style's name on the row at the cursor"""


def line(*pieces: str | Piece) -> Line:
    """Return a line of these pieces; a bare text has the style `text`."""
    return [(piece, TEXT) if isinstance(piece, str) else piece for piece in pieces]


def width(shown: Line) -> int:
    """Return how many cells a line takes."""
    return sum(cell_len(text) for text, _ in shown)


def plain(shown: Line) -> str:
    """Return a line without its styles."""
    return "".join(text for text, _ in shown)


def safe(text: str) -> str:
    """Return a text of which no character does anything to a terminal."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else REPLACEMENT for each in text)


def fitted(shown: Line, cells: int) -> Line:
    """Return the line padded or cut to exactly so many cells; what is cut shows as `…`."""
    left = max(0, cells)
    result: Line = []
    for text, style in shown:
        clean = safe(text)
        taken = cell_len(clean)
        if taken > left:
            if left:
                result.append((fit(clean, left), style))
            return result
        if clean:
            result.append((clean, style))
        left -= taken
    if left:
        result.append((" " * left, TEXT))
    return result


def spread(left: Line, right: Line, cells: int) -> Line:
    """Return a line with one part at its left end and one, if there is room, at its right end."""
    free = cells - width(right) - 1
    if free < min(width(left), cells // 4):
        return fitted(left, cells)
    return [*fitted(left, free), (" ", TEXT), *right]


def tail(shown: Line, skipped: int) -> Line:
    """Return the line without its first cells."""
    result: Line = []
    for text, style in shown:
        taken = cell_len(text)
        if skipped >= taken:
            skipped -= taken
        elif skipped:
            rest = text
            while skipped > 0 and rest:
                skipped -= cell_len(rest[0])
                rest = rest[1:]
            result.append((" " * -skipped + rest, style))
            skipped = 0
        else:
            result.append((text, style))
    return result


def restyled(shown: Line, style: str) -> Line:
    """Return the line in one style."""
    return [(text, style) for text, _ in shown]


def at_cursor(shown: Line) -> Line:
    """Return the line as the row at the cursor is shown."""
    return [(text, style + AT_CURSOR) for text, style in shown]


def filled(lines: Iterable[Line], cells: int, height: int) -> list[Line]:
    """Return exactly so many lines of so many cells."""
    result = [fitted(each, cells) for each in list(lines)[: max(0, height)]]
    result += [fitted([], cells) for _ in range(height - len(result))]
    return result


def beside(*columns: Sequence[Line]) -> list[Line]:
    """Return columns of equal height, each already fitted, side by side."""
    return [[piece for part in row for piece in part] for row in zip(*columns, strict=True)]


def box(
    title: str | Line,
    lines: Iterable[Line],
    cells: int,
    height: int,
    right: str = "",
    style: str = BORDER,
) -> list[Line]:
    """Return a frame with a title around lines; outside it has this width and height."""
    if height < 2 or cells < 4:
        return filled(lines, cells, height)
    named = line((title, HEAD)) if isinstance(title, str) else title
    top: Line = [("╭ ", style), *named, (" ", style)] if named else [("╭", style)]
    end: Line = [(f" {right} ", MUTED), ("─╮", style)] if right else [("╮", style)]
    dashes = cells - width(top) - width(end)
    if dashes < 0:
        top, end = fitted(top, cells - 1), [("╮", style)]
        dashes = 0
    result: list[Line] = [[*top, ("─" * dashes, style), *end]]
    inside = filled(lines, cells - 4, height - 2)
    result += [[("│ ", style), *each, (" │", style)] for each in inside]
    result.append([("╰" + "─" * (cells - 2) + "╯", style)])
    return result


def over(below: list[Line], above: list[Line], cells: int) -> list[Line]:
    """Return lines with others, of equal width, laid over their middle."""
    if not above:
        return below
    taken = width(above[0])
    left = max(0, (cells - taken) // 2)
    top = max(0, (len(below) - len(above)) // 2)
    result = list(below)
    for number, each in enumerate(above[: len(below) - top], top):
        beneath = fitted(below[number], cells)
        result[number] = [*fitted_head(beneath, left), *each, *tail(beneath, left + taken)]
    return result


def fitted_head(shown: Line, cells: int) -> Line:
    """Return the first cells of a line, without a mark where it is cut."""
    result: Line = []
    for text, style in shown:
        if cells <= 0:
            break
        taken = cell_len(text)
        result.append((text if taken <= cells else set_cell_size(text, cells), style))
        cells -= taken
    return result


def gauge(part: float | None, cells: int, style: str = "good") -> Line:
    """Return a bar of which this part, 0 to 1, is full."""
    full = 0 if part is None else round(min(1.0, max(0.0, part)) * cells)
    return [("▓" * full, style), ("░" * (cells - full), MUTED)]
