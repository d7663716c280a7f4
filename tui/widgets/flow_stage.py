"""One box of the flow from the sensors to the fleet."""

from collections.abc import Sequence

from textual.content import Content

from tui.widgets.live import Live

Line = tuple[str, Content | str]
"""a name and the figure to its right; a line without a name takes the whole width"""


class FlowStage(Live):
    """A titled box with up to three lines."""

    def __init__(self, title: str, *, id: str) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id, classes="stage")
        self.border_title = title

    def show(self, lines: Sequence[Line]) -> None:
        """Draw the lines, each figure at the right edge."""
        width = self.content_size.width
        self.put(Content("\n").join(_line(name, figure, width) for name, figure in lines))


def _line(name: str, figure: Content | str, width: int) -> Content:
    text = figure if isinstance(figure, Content) else Content(figure)
    if not name:
        return text
    gap = max(1, width - len(name) - text.cell_length)
    return Content.assemble((name, "$text-muted"), " " * gap, text)
