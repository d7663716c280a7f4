"""Events: what a person would want to know; below it the log as it comes."""

from collections.abc import Iterable, Sequence
from typing import Any

from tui.line import MUTED, Line, box, line
from tui.queries import EVENTS, Document, Query, number, text
from tui.signs import severity
from tui.state import LogLine
from tui.subject import Subject, subject_of_event, subject_of_words
from tui.table import Column, Table
from tui.text import lasting, moment, span, time_of_day
from tui.verdict import event_words
from tui.view import Action, View, dimmed

LEVELS = {"error": "bad", "critical": "bad", "warning": "warn", "info": "text", "debug": MUTED}
WIDEST = 200
CHATTER = "connection_lines"
"""the logger of connects and disconnects"""


class Events(View):
    """Events of the query `events`, with the log below."""

    title = "Events"
    about = "what happened, since when, and the log"
    panes = True

    def __init__(self, session: Any) -> None:
        super().__init__(session)
        columns = [
            Column[Document](" ", 1, lambda row: severity(text(row.get("severity")))),
            Column[Document](
                "WHEN", 13, self._when, lambda row: number(row.get("time")), right=True
            ),
            Column[Document]("FOR", 7, self._lasting, right=True, least=60),
            Column[Document](
                "KIND",
                8,
                lambda row: (text(row.get("kind")), MUTED),
                lambda row: text(row.get("kind")),
                least=70,
            ),
            Column[Document](
                "WHO",
                22,
                lambda row: text(row.get("subject"), 80),
                lambda row: text(row.get("subject")),
            ),
            Column[Document]("WHAT", 0, _what),
        ]
        self.table: Table[Document] = Table(
            columns, lambda row: str(row.get("id")), empty="no event is known"
        )
        self.below: Table[LogLine] = log_table()
        self.focus(self.table)
        self._chatter = False

    def queries(self) -> list[Query]:
        """Return the query for events."""
        return [EVENTS]

    def actions(self) -> Sequence[Action]:
        """Return what can be done here."""
        return [
            Action("enter", "open", self._enter, "⏎"),
            Action("m", "mark as seen", self.session.mark_seen),
            Action("L", "log", lambda: self.session.open(Log(self.session))),
            Action("c", "connection log", self._toggle),
        ]

    def subject(self) -> Subject | str | None:
        """Return what the event or the line at the cursor is about."""
        if self.below is not None and self.below is self.focused:
            return subject_of_line(self.below.current)
        row = None if self.table is None else self.table.current
        return None if row is None else subject_of_event(row)

    def draw(self, cells: int, height: int) -> list[Line]:
        """Return events above, the log below."""
        now = self.session.now
        self.table.fill(self.answer(EVENTS).rows())
        old = self.old(EVENTS, now)
        above = height if self.zoomed or height < 12 else max(6, height // 2)
        unseen = self.session.unseen()
        right = old or (f"{unseen} new · m: mark as seen" if unseen else "all seen")
        lines = dimmed(self.table.draw(cells - 4, above - 2), old)
        style = self.frame_of(self.table)
        result = box(f"events {len(self.table.rows)}", lines, cells, above, right, style)
        if height > above:
            self.below.top = above + 1
            shown = [each for each in self.session.state.log if self._chatter or not _came(each)]
            follow_log(self.below, shown)
            lines = self.below.draw(cells - 4, height - above - 2)
            style = self.frame_of(self.below)
            result += box("log", lines, cells, height - above, "L: all of it", style)
        return result

    def _when(self, row: Document) -> tuple[str, str]:
        at = number(row.get("time"))
        new = (number(row.get("id")) or 0) > self.session.seen_until()
        return moment(at and at / 1_000, self.session.now), "accent" if new else MUTED

    def _lasting(self, row: Document) -> tuple[str, str]:
        begun, until = number(row.get("time")), number(row.get("until"))
        if begun is None or row.get("kind") not in ("alarm", "link", "flapping", "shared"):
            return "", MUTED
        if until is None:
            return lasting(self.session.there - begun / 1_000).replace(" ", ""), "warn"
        return span((until - begun) / 1_000).replace(" ", ""), MUTED

    def _enter(self) -> None:
        if self.table.current is not None:
            self.session.open(EventDetail(self.session, self.table.current))

    def _toggle(self) -> None:
        self._chatter = not self._chatter


class EventDetail(View):
    """One event in full."""

    title = "event"

    def __init__(self, session: Any, row: Document) -> None:
        super().__init__(session)
        self._row = row

    def subject(self) -> Subject | str:
        """Return what the event is about."""
        return subject_of_event(self._row)

    def draw(self, cells: int, height: int) -> list[Line]:
        """Return all of it, wrapped."""
        now = self.session.now
        row = self._row
        begun, until = number(row.get("time")), number(row.get("until"))
        pairs = [
            ("what", text(row.get("kind"))),
            ("who", text(row.get("subject"), 240)),
            ("from", moment(begun and begun / 1_000, now)),
            ("until", moment(until and until / 1_000, now) if until else "it lasts, or was once"),
            ("times", text(row.get("count"))),
        ]
        lines = [line((f"{name:<7} ", MUTED), words) for name, words in pairs]
        words = text(row.get("text"), 2_000)
        inner = max(10, cells - 6)
        lines += [[], *[line(words[at : at + inner]) for at in range(0, len(words), inner)]]
        return box(f"event {text(row.get('id'))}", lines, cells, height, "escape: back")


class Log(View):
    """All lines of the log that are kept, filtered and with a cursor."""

    title = "log"

    def __init__(self, session: Any) -> None:
        super().__init__(session)
        self.table: Table[LogLine] = log_table()
        self._follows = True

    def actions(self) -> Sequence[Action]:
        """Return what can be done here."""
        return [Action("space", "pause" if self._follows else "follow", self._pause)]

    def subject(self) -> Subject | str | None:
        """Return what the line at the cursor is about."""
        return subject_of_line(self.table.current if self.table is not None else None)

    def draw(self, cells: int, height: int) -> list[Line]:
        """Return the lines, the newest last."""
        if self._follows or self.table.filter or not self.table.rows:
            follow_log(self.table, self.session.state.log, follows=self._follows)
        lines = self.table.draw(cells - 4, height - 2)
        right = "following" if self._follows else "paused"
        return box(f"log {len(self.table.rows)} of {self.table.total}", lines, cells, height, right)

    def _pause(self) -> None:
        self._follows = not self._follows


def _part(each: LogLine) -> str:
    """Return the part of the gateway that a line is of."""
    words = each.logger.split(".")
    return words[1] if words[0] == "gateway" and len(words) > 1 else words[0]


def _came(each: LogLine) -> bool:
    return each.logger.endswith(CHATTER)


def subject_of_line(each: LogLine | None) -> Subject | str | None:
    """Return what a line of the log is about, or that it names nothing."""
    return None if each is None else subject_of_words(each.message)


def log_table() -> Table[LogLine]:
    """Return a table of lines of the log."""
    columns = [
        Column[LogLine](
            "TIME", 8, lambda each: (time_of_day(each.time), MUTED), lambda each: each.time
        ),
        Column[LogLine](
            "LEVEL",
            7,
            lambda each: (each.level, LEVELS.get(each.level, "text")),
            lambda each: each.level,
        ),
        Column[LogLine]("FROM", 9, lambda each: (_part(each), MUTED), _part, least=70),
        Column[LogLine]("LINE", 0, lambda each: (each.message, LEVELS.get(each.level, "text"))),
    ]
    return Table(columns, lambda each: f"{each.time} {each.message}", empty="no line yet")


def follow_log(table: Table[LogLine], log: Iterable[LogLine], *, follows: bool = True) -> None:
    """Show these lines, and the newest one at the end if the cursor was there."""
    at_end = table.cursor >= len(table.rows) - 1
    table.fill(list(log))
    if follows and at_end:
        table.move(len(table.rows))


def _what(row: Document) -> str:
    times = number(row.get("count")) or 1
    return event_words(row, WIDEST) + (f" ({times:,.0f} times)" if times > 1 else "")
