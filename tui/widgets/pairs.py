"""Lines of a name at the left edge and a figure at the right one."""

from collections.abc import Iterable

from textual.content import Content


def pair_lines(pairs: Iterable[tuple[str, str]], width: int) -> Content:
    """Return one line of `width` cells for each pair."""
    return Content("\n").join(_pair(name, figure, width) for name, figure in pairs)


def _pair(name: str, figure: str, width: int) -> Content:
    gap = max(1, width - len(name) - len(figure))
    return Content.assemble((name, "$text-muted"), " " * gap, figure)
