"""A text that is drawn again only when it changed."""

from textual.content import Content
from textual.widgets import Static


class Live(Static):
    """A Static for content that is computed several times a second."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__("", id=id, classes=classes, markup=False)
        self._shown = Content("")

    def put(self, content: Content) -> None:
        """Show `content`; a new layout is made only when its length in lines or cells changed."""
        if self._shown.is_same(content):
            return
        layout = _extent(self._shown) != _extent(content)
        self._shown = content
        self.update(content, layout=layout)


def _extent(content: Content) -> tuple[int, int]:
    return content.plain.count("\n"), content.cell_length
