"""Queues: where messages wait, why, and until when; rules with what they save; pause, resume."""

from collections.abc import Callable, Sequence
from typing import Any

from tui.figures import OUTBOX_BYTES, OUTBOX_OLDEST, OUTBOX_ROWS, uplink_prefix
from tui.line import MUTED, Line, box, fitted, gauge, line
from tui.orders import Order
from tui.queries import Answer, Document, Query, number, query, text
from tui.screens.plots import PLOTS, plot_actions, plots
from tui.screens.rule import RuleEditor, place_of, subject_of_rule
from tui.series import SPANS
from tui.signs import state_cell
from tui.state import GatewayState, Uplink
from tui.subject import Subject, subject_of_queue
from tui.table import Cell, Column, Table, figure, rate_of, whole
from tui.text import UNKNOWN, amount, outage, size, span
from tui.verdict import DOWN, brief
from tui.view import Action, View, dimmed, trouble

QUEUES = query("queues", 2.0, seconds=1, limit=200)
RULES = query("rules", 5.0, limit=100)
REJECTED = "tidegate/uplink/rejected"
"""the figure of messages that the fleet has rejected"""
ORDER = {"uplink": 0, "channel": 1, "delayed": 2, "session": 3}


def label(row: Document) -> str:
    """Return what a queue is called."""
    name = text(row.get("name"), 80)
    kind = text(row.get("kind"))
    return name or {"uplink": "the uplink", "delayed": "delayed messages"}.get(kind, kind)


def key(row: Document) -> str:
    """Return what distinguishes a queue."""
    return f"{row.get('kind')} {row.get('name')}"


def uplink_row(state: GatewayState, uplink: Uplink) -> Document:
    """Return what the figures say of an uplink as a row of the query `queues`."""
    known, rates, begin = state.figures, state.rates, uplink_prefix(uplink.name)
    is_only = uplink.waiting is not None and uplink.waiting == known.count(OUTBOX_ROWS)
    stopped = uplink.state in DOWN  # the mean of ten seconds still has what went before
    gone = 0.0 if stopped else rates.get(f"{begin}acknowledged")
    rise = rates.change(f"{begin}waiting" if uplink.name else OUTBOX_ROWS)
    row: dict[str, object] = {
        "kind": "uplink",
        "name": uplink.name,
        "state": uplink.state,
        "error": uplink.error,
        "destination": uplink.destination,
        "attempt": uplink.attempt,
        "inflight": known.count(f"{begin}inflight"),
        "depth": uplink.waiting,
        # of several uplinks only one for which all messages wait is known to have the oldest
        "oldest_seconds": known.number(OUTBOX_OLDEST) if is_only and uplink.waiting else None,
        "bytes": known.number(OUTBOX_BYTES) if is_only else None,
        "out_rate": gone,
    }
    if gone is not None and rise is not None:
        row["in_rate"] = max(0.0, gone + rise)
        if uplink.waiting and rise < 0 and not stopped:
            row["empty_seconds"] = uplink.waiting / -rise
    return row


def queue_rows(session: Any) -> list[Document]:
    """Return the queues; of uplinks what the figures say, as on every other screen."""
    state, answer = session.state, session.queries.get(QUEUES)
    rows = [uplink_row(state, each) for each in state.uplinks({})]
    rows += [each for each in answer.rows() if not rows or each.get("kind") != "uplink"]
    return sorted(rows, key=lambda row: (ORDER.get(str(row.get("kind")), 9), label(row)))


def rules_of(answer: Answer, row: Document | None) -> list[Document]:
    """Return the rules of a queue, if it is an uplink."""
    if row is None or row.get("kind") != "uplink":
        return []
    return [
        rule
        for rule in answer.rows()
        if row.get("name") in (found if isinstance(found := rule.get("uplinks"), list) else [])
    ]


class Queues(View):
    """The query `queues`, with the rules of the uplink at the cursor below it."""

    title = "Queues"
    about = "what waits, why and until when; rules; pause and resume"
    panes = True
    marks = True

    def __init__(self, session: Any) -> None:
        super().__init__(session)
        self.table: Table[Document] = Table(self._columns(), key, empty="nothing waits anywhere")
        self.rules = rules_table()
        self.rules.has_keys = False
        self._plotted = False

    def _columns(self) -> Sequence[Column[Document]]:
        return [
            Column("WHERE", 0, label, label),
            Column(
                "KIND",
                8,
                lambda row: (text(row.get("kind")), MUTED),
                lambda row: text(row.get("kind")),
                least=58,
            ),
            Column(
                "STATE",
                14,
                lambda row: state_cell(text(row.get("state"))) if row.get("state") else "",
            ),
            figure("WAITING", 9, "depth", whole),
            figure("SENT", 6, "inflight", whole, least=96),
            figure("OLDEST", 8, "oldest_seconds", _age, least=60),
            figure("IN/S", 6, "in_rate", rate_of, least=68),
            figure("OUT/S", 6, "out_rate", rate_of, least=68),
            Column("EMPTY IN", 8, lambda row: _age(row, "empty_seconds"), right=True, least=96),
            Column("WHY", 44, lambda row: (brief(text(row.get("error"))), "bad"), least=130),
        ]

    def queries(self) -> list[Query]:
        """Return the queries for queues and rules."""
        return [QUEUES, RULES, self.session.courses[SPANS[self.session.span][0]].query()]

    def actions(self) -> Sequence[Action]:
        """Return what can be done with the queue at the cursor, or those that are marked."""
        row, found = self.table.current, []
        chosen = self.table.chosen()
        stoppable = [each for each in chosen if each.get("kind") in ("uplink", "channel")]
        if stoppable:
            word = "resume" if all(map(_is_paused, stoppable)) else "pause"
            rows = [each for each in stoppable if _is_paused(each) == (word == "resume")]
            words = f"{word} {_named(rows)}"
            found.append(Action("p", words, lambda: self._pause(rows, word), prompts=True))
        if row is not None and self.below is not None and self.below.has_keys:
            found.append(Action("enter", "edit rule", self._edit_rule, "⏎"))
        else:
            found.append(Action("enter", "open", self._enter, "⏎"))
        if self._rules_of(row):
            found.append(Action("e", "edit a rule", self._edit_rule))
        channels = [each for each in chosen if each.get("kind") == "channel"]
        if channels:
            found.append(Action("E", "empty", lambda: self._empty(channels), prompts=True))
        uplinks = [each for each in chosen if each.get("kind") == "uplink"]
        if uplinks and self.session.state.figures.count(REJECTED):
            found.append(Action("R", "redrive", lambda: self._redrive(uplinks), prompts=True))
        return [*found, *(plot_actions(self.session) if self._plotted else [])]

    def subject(self) -> Subject | None:
        """Return the queue or the rule at the cursor."""
        if self.below is not None and self.below is self.focused:
            return subject_of_rule(self.rules.current)
        row = self.table.current
        return None if row is None else subject_of_queue(row)

    def draw(self, cells: int, height: int) -> list[Line]:
        """Return the queues, and below them the one at the cursor."""
        now = self.session.now
        answer, old = self.answer(QUEUES), self.old(QUEUES, now)
        rows = queue_rows(self.session)
        if answer.at is None and not rows:
            return box("queues", trouble(old, cells - 4, height - 2), cells, height)
        self.table.fill(rows)
        rules = self._rules_of(self.table.current)
        self.rules.fill(rules)
        below = 0 if self.zoomed or height < 12 else min(height // 2, 9 + len(rules))
        self.below = self.rules if rules and below else None
        if self.below is None or not self.below.has_keys:
            self.focus(self.table)
        above = min(height - below, len(rows) + 3) if below else height
        lines = dimmed(self.table.draw(cells - 4, above - 2), old)
        right = old or (f"sort: {self.table.sorted_by()}" if self.table.sort is not None else "")
        style = self.frame_of(self.table)
        result = box(f"where messages wait {len(rows)}", lines, cells, above, right, style)
        self._plotted = False
        if not below:
            return result
        rest = height - above
        self.rules.top = above + 1
        self._plotted = rest >= 18
        if self._plotted:
            result += self._below(cells, rest - 12, now)
            return result + plots(self, cells, 12, PLOTS[1:])
        return result + self._below(cells, rest, now)

    def _rules_of(self, row: Document | None) -> list[Document]:
        return rules_of(self.answer(RULES), row)

    def _edit_rule(self) -> None:
        rule = self.rules.current
        if self.below is None or rule is None:
            self._enter()
        elif self.rules.has_keys or len(self._rules_of(self.table.current)) == 1:
            self.session.open(RuleEditor(self.session, rule))
        else:
            self.next_pane()

    def _below(self, cells: int, height: int, now: float) -> list[Line]:
        row = self.table.current
        if row is None:
            return [[] for _ in range(height)]
        lines: list[Line] = []
        if row.get("error"):
            lines.append(line((text(row.get("error"), 200), "bad")))
        status = self.session.queries.get_status()
        if row.get("kind") == "uplink":
            survives = self.session.state.survives(status.document)
            if row.get("destination"):
                lines.append(line(("to        ", MUTED), text(row.get("destination"), 120)))
            if (attempt := number(row.get("attempt"))) is not None:
                lines.append(line(("next try  ", MUTED), f"in {span(attempt)}"))
            capacity = line(("capacity  ", MUTED))
            if survives is None:
                capacity.append(("not known until ten minutes have been counted", MUTED))
            else:
                part = min(1.0, survives / (7 * 86_400))
                capacity += [
                    (outage(survives) + "  ", "text"),
                    *gauge(part, 10, "good" if part > 0.15 else "warn"),
                    ("  until the outbox is full" if survives else "  the outbox is full", MUTED),
                ]
            if (seconds := number(row.get("empty_seconds"))) is not None:
                lines.append(line(("empty in  ", MUTED), f"{span(seconds)} at these rates"))
            lines += [capacity, *self._rejected(), []]
            self.rules.top += len(lines)
            if self.below is not None:
                lines += self.rules.draw(cells - 4, height - 2 - len(lines))
        elif row.get("filter"):
            lines.append(line(("filter    ", MUTED), text(row.get("filter"), 120)))
            lines.append(line(("in flight ", MUTED), whole(row, "inflight")))
        octets = number(row.get("bytes"))
        if octets is not None:
            lines.append(line(("bytes     ", MUTED), size(int(octets))))
        style = self.frame_of(self.rules)
        return box(label(row), lines, cells, height, self.old(RULES, now), style)

    def _enter(self) -> None:
        row = self.table.current
        if row is not None and row.get("kind") == "session":
            from tui.screens.clients import ClientDetail

            self.session.open(ClientDetail(self.session, str(row.get("name"))))
        elif row is not None:
            self.session.open(QueueDetail(self.session, row))

    def _rejected(self) -> list[Line]:
        """Return what the fleet has rejected, which waits for a person."""
        count = self.session.state.figures.count(REJECTED)
        if not count:
            return []
        words = f"{count:,} that the fleet rejected, of all uplinks; R sends them again"
        return [line(("rejected  ", MUTED), (words, "warn"))]

    def _pause(self, rows: Sequence[Document], word: str) -> None:
        status = self.session.queries.get_status().document
        survives = self.session.state.survives(status)
        capacity = f", capacity for {outage(survives)}" if survives is not None else ""
        consequence = f"Its messages wait{capacity}. The pause outlives restarts."
        if word == "resume":
            depth = sum(int(number(row.get("depth")) or 0) for row in rows)
            consequence = f"{depth:,} waiting messages are sent."
        self.session.ask(
            f"{word.capitalize()} {_named(rows, kinds=True)}?",
            consequence,
            for_each(rows, lambda row: self._stop(row, word)),
        )

    def _stop(self, row: Document, word: str) -> None:
        """Order one queue to pause or resume."""
        name, kind = str(row.get("name") or ""), str(row.get("kind"))
        part, payload = f"channel/{name}/{word}", ""
        if kind == "uplink":
            part, payload = f"uplink/{name}" if name else "uplink", word
        order = Order(
            word,
            _named([row], kinds=True),
            lambda: self._state_of(kind, name),
            lambda state: (state == "paused") == (word == "pause"),
        )
        self.session.give_order(part, payload, order)

    def _redrive(self, rows: Sequence[Document]) -> None:
        """Ask, and send again what the fleet has rejected."""
        count = self.session.state.figures.count(REJECTED) or 0

        def retry(row: Document) -> None:
            name = row.get("name") or None
            wanted = query("rejected", 0.0, do="retry", numbers="all", uplink=name)
            self.session.do(wanted, f"put back into the outbox of {label(row)}")

        self.session.ask(
            f"Redrive what {_named(rows, kinds=True)} rejected?",
            f"Of {count:,} rejected messages its own go back into the outbox, under their numbers.",
            for_each(rows, retry),
        )

    def _state_of(self, kind: str, name: str) -> str:
        """Return the state of a queue as the screen shows it."""
        for row in queue_rows(self.session):
            if row.get("kind") == kind and row.get("name") == name:
                return text(row.get("state"))
        return ""

    def _empty(self, rows: Sequence[Document]) -> None:
        depth = sum(int(number(row.get("depth")) or 0) for row in rows)
        self.session.ask(
            f"Empty {_named(rows, kinds=True)}?",
            f"{depth:,} messages are gone for ever.",
            for_each(rows, lambda row: self._empty_one(str(row.get("name")))),
        )

    def _empty_one(self, name: str) -> None:
        order = Order(
            "empty",
            f"channel {name}",
            lambda: self._depth_of(name),
            lambda depth: depth == "empty",
        )
        self.session.give_order(f"channel/{name}/empty", "", order)

    def _depth_of(self, name: str) -> str:
        for row in self.answer(QUEUES).rows():
            if row.get("kind") == "channel" and row.get("name") == name:
                return "empty" if not row.get("depth") else f"{whole(row, 'depth')} deep"
        return ""


class QueueDetail(View):
    """One queue with every figure that has its name."""

    title = "queue"

    def __init__(self, session: Any, row: Document) -> None:
        super().__init__(session)
        self._row = row
        self.table = rules_table() if row.get("kind") == "uplink" else None

    def name(self) -> str:
        """Return what the queue is called."""
        return label(self._row)

    def queries(self) -> list[Query]:
        """Return the queries for rules."""
        return [RULES]

    def actions(self) -> Sequence[Action]:
        """Return what can be done with the rule at the cursor."""
        rule = self.table.current if self.table is not None else None
        if rule is None:
            return []
        edit = lambda: self.session.open(RuleEditor(self.session, rule))  # noqa: E731
        return [Action("e", "edit rule", edit), Action("enter", "edit rule", edit, "⏎", quiet=True)]

    def subject(self) -> Subject:
        """Return the rule at the cursor, or the queue if it has none."""
        rule = None if self.table is None else subject_of_rule(self.table.current)
        return rule or subject_of_queue(self._row)

    def every_figure(self) -> bool:
        """Return that it shows figures that are not usual."""
        return True

    def draw(self, cells: int, height: int) -> list[Line]:
        """Return its rules and its figures."""
        name, kind = text(self._row.get("name")), text(self._row.get("kind"))
        begin = {"uplink": "tidegate/uplink/", "channel": "tidegate/channels/"}.get(
            kind, "tidegate/outbox/"
        )
        begin += f"{name}/" if name else ""
        found = [
            (each.removeprefix(begin), value)
            for each, value in self.session.state.figures.shown()
            if each.startswith(begin) and "/" not in each.removeprefix(begin)
        ]
        lines: list[Line] = []
        if self.table is not None:
            rules = rules_of(self.answer(RULES), self._row)
            self.table.fill(rules)
            most = min(len(rules) + 1, max(3, height // 2))
            lines += [*self.table.draw(cells - 4, most), []] if rules else []
        column = max(30, (cells - 4) // max(1, (cells - 4) // 40))
        across = max(1, (cells - 4) // column)
        for at in range(0, len(found), across):
            part: Line = []
            for each, value in found[at : at + across]:
                words = f"{each.replace('_', ' '):<{column - 14}} "
                part += fitted(line((words[: column - 13], MUTED), value), column)
            lines.append(part)
        return box(label(self._row), lines, cells, height, "escape: back")


def _counted(rule: Document, name: str) -> float | None:
    counters = rule.get("counters")
    return number(counters.get(name)) if isinstance(counters, dict) else None


def _passed(rule: Document) -> float | None:
    seen, took = _counted(rule, "evaluated"), _counted(rule, "passed")
    return (took or 0) / seen if seen else None


def _words_of(rule: Document) -> str:
    where = text(rule.get("where"), 240)
    return text(rule.get("topic"), 120) + (f"  {where}" if where else "")


def _passed_words(rule: Document) -> str:
    return UNKNOWN if (part := _passed(rule)) is None else f"{100 * part:.0f} %"


def _cost(rule: Document) -> str:
    cost = _counted(rule, "microseconds")
    return UNKNOWN if cost is None else f"{cost:.1f}"


def _bar(rule: Document) -> tuple[str, str]:
    part = _passed(rule) or 0.0
    return "▓" * round(part * 20) + "░" * (20 - round(part * 20)), "plot"


def rules_table() -> Table[Document]:
    """Return a table of the rules of an uplink."""

    def counter(head: str, cells: int, name: str, show: Callable[[int], str]) -> Column[Document]:
        return Column(
            head,
            cells,
            lambda rule: show(int(_counted(rule, name) or 0)),
            lambda rule: _counted(rule, name),
            right=True,
            least=60,
        )

    columns = [
        Column("RULE", 0, _words_of, _words_of),
        counter("SEEN", 8, "evaluated", amount),
        counter("TOOK", 8, "passed", amount),
        Column("PASS", 5, _passed_words, _passed, right=True),
        counter("SAVED", 9, "bytes_saved", size),
        Column("µS", 5, _cost, lambda rule: _counted(rule, "microseconds"), right=True, least=70),
        Column("GOES UP", 20, _bar, least=100),
    ]
    return Table(columns, place_of, empty="no rule")


def for_each(rows: Sequence[Document], act: Callable[[Document], None]) -> Callable[[], None]:
    """Return what does this with each of these rows."""

    def run() -> None:
        for row in rows:
            act(row)

    return run


def _is_paused(row: Document) -> bool:
    return row.get("state") == "paused"


def _named(rows: Sequence[Document], *, kinds: bool = False) -> str:
    """Return what queues are called together."""
    if len(rows) > 1:
        return f"{len(rows)} queues"
    name = text(rows[0].get("name"), 80)
    return f"{text(rows[0].get('kind'))} {name}" if kinds and name else label(rows[0])


def _age(row: Document, name: str) -> Cell:
    seconds = number(row.get(name))
    return (UNKNOWN if seconds is None else span(seconds).replace(" ", "")), "text"
