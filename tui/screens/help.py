"""The keys of the screen in view, then those of all, and what the signs mean."""

from tui.line import HEAD, MUTED, Line, box, filled, fitted, line
from tui.signs import SIGNS
from tui.view import View

MORE = (
    ("↑ ↓ j k", "move; page keys, ctrl+d, ctrl+u, g, G: further"),
    ("enter", "into what is at the cursor"),
    ("1 to 6", "Now, Topics, Clients, Queues, Nodes, Events"),
    ("/", "where there is a table: words that a row must contain; !word: must not; ~regex"),
    (":", "a command; tab completes; every action is one"),
)


class Help(View):
    """Two columns where there is room."""

    title = "help"

    def __init__(self, session) -> None:  # type: ignore[no-untyped-def]
        super().__init__(session)
        self._below = session.view

    def draw(self, cells: int, height: int) -> list[Line]:
        """Return the keys of what is below, then all."""
        here = [
            _row(each.shown or each.key, each.words)
            for each in self.session.actions_of(self._below)
        ]
        lines = [line((f"{self._below.name()}", HEAD)), *here, []]
        lines += [line(("everywhere", HEAD))]
        lines += [_row(key, words) for key, words in MORE]
        shown = {each.key for each in self.session.actions_of(self._below)}
        for each in self.session.common():
            if not each.key.isdigit() and each.key not in shown | {"colon", "question_mark"}:
                lines.append(_row(each.shown or each.key, each.words))
        signs = [line((f"{sign} ", style), (word, MUTED)) for word, (sign, style) in SIGNS.items()]
        lines += [[], line(("signs", HEAD)), _joined(signs)]
        lines.append(line(("figures that are old are dim and say how old they are", MUTED)))
        rows = height - 2
        if len(lines) > rows and cells >= 76:
            half = (cells - 4) // 2
            left = filled(lines[:rows], half, rows)
            right = filled(lines[rows:], cells - 4 - half, rows)
            lines = [[*a, *b] for a, b in zip(left, right, strict=True)]
        return box("keys and signs", lines, cells, height, "escape: back")


def _row(key: str, words: str) -> Line:
    return [*fitted(line((key, "key")), 11), (words, MUTED)]


def _joined(parts: list[Line]) -> Line:
    return [piece for part in parts for piece in [*part, ("  ", MUTED)]]
