"""Where the last message of a topic went, and why: the query `why`."""

from typing import Any

from tui.line import MUTED, Line, box, line
from tui.queries import query
from tui.text import printable
from tui.view import View, trouble


class Why(View):
    """The lines that the gateway gives."""

    title = "why"

    def __init__(self, session: Any, topic: str) -> None:
        super().__init__(session)
        self._topic = topic
        self._query = query("why", 0.0, topic=topic)
        self._lookup = query("topic", 5.0, topic=topic)

    def queries(self):  # type: ignore[no-untyped-def]
        """Return the query for it, and for who gets such messages."""
        return [self._query, self._lookup]

    def draw(self, cells: int, height: int) -> list[Line]:
        """Return what the gateway says."""
        answer, lookup = self.answer(self._query), self.answer(self._lookup)
        lines: list[Line] = []
        for name, words in (("receivers", "gets each message"), ("filtered", "a filter decides")):
            found = lookup.document.get(name)
            names = [printable(str(each), 60) for each in found] if isinstance(found, list) else []
            lines += [line((f"{name:<40} ", "accent"), (words, MUTED)) for name in names]
        if lookup.at is not None and not lines:
            lines.append(line(("no client receives it", MUTED)))
        lines.append([])
        told = answer.document.get("lines")
        if isinstance(told, list):
            lines += [_told(printable(str(each), 400)) for each in told]
        else:
            lines += trouble(answer.error or "asking…", cells - 4, 3)
        name = printable(self._topic, 120)
        return box(f"where {name} went, and why", lines, cells, height, "escape: back")


def _told(words: str) -> Line:
    style = "text" if words.startswith(" ") else "head"
    return line((words, style))
