"""A rule's editor: an edit tried on live messages, and the command that applies it."""

import shlex
from collections.abc import Callable, Sequence
from typing import Any

from tui.line import MUTED, Line, box, gauge, line
from tui.queries import Document, Query, number, query, text
from tui.screens.topics import ACCEPTED, where_problem
from tui.subject import Subject
from tui.text import UNKNOWN, moment, printable, size, span
from tui.view import Action, View, dimmed

SECONDS = 300
"""how long a trial lasts, unless it is retried"""
TRIAL = "tui"
"""the trial's name: a new one ends the one before"""


def place_of(rule: Document) -> str:
    """Return a rule as commands and queries name it: its name in the ledger."""
    return str(rule.get("rule") or "")


def subject_of_rule(rule: Document | None) -> Subject | None:
    """Return a rule as what `w` explains."""
    return None if rule is None else Subject("rule", place_of(rule))


def filter_problem(words: str) -> str:
    """Return what is wrong with a topic filter, or that it is accepted."""
    from gateway.mqtt.errors import MqttError
    from gateway.mqtt.topics import check_topic_filter

    try:
        check_topic_filter(words)
    except MqttError as error:
        return printable(str(error), 160)
    return ACCEPTED


class RuleEditor(View):
    """Both rules beside each other: what each took, bytes a day, gaps, what only one took."""

    title = "rule"

    def __init__(self, session: Any, rule: Document) -> None:
        super().__init__(session)
        self._rule = rule
        self._topic = str(rule.get("topic") or "")
        self._where = str(rule.get("where") or "")
        self._began: Query | None = None

    def name(self) -> str:
        """Return the rule's name."""
        return place_of(self._rule)

    def queries(self) -> list[Query]:
        """Return the queries for the trial: its beginning once, then what it has found."""
        if self._began is None or self.answer(self._began).at is None:
            return []
        return [] if self._trial().get("state") == "over" else [self._found()]

    def actions(self) -> Sequence[Action]:
        """Return what can be done with the rule."""
        found = [
            Action("e", "edit where", self._edit_where),
            Action("t", "edit topic", self._edit_topic),
        ]
        if self._edits():
            found.append(Action("R", "retry", self._begin))
        if self._trial().get("state") == "running":
            found.append(Action("E", "end the trial", self._end))
        return found

    def subject(self) -> Subject | None:
        """Return this rule, as it is now."""
        return subject_of_rule(self._rule)

    def copied(self) -> str:
        """Return the command that applies the edit."""
        return self.command()

    def command(self) -> str:
        """Return the command that applies the edit, for a shell of the gateway's machine."""
        words = ["tidegate", "rule", "apply", place_of(self._rule)]
        for key, value in self._edits().items():
            # An expression that begins with a minus would be taken for an option.
            given = [f"--{key}={value}"] if value and value[0] == "-" else [f"--{key}", value or ""]
            words += ["--unset", key] if value is None else given
        return " ".join(shlex.quote(each) for each in words)

    def closed(self) -> None:
        """End the trial, which nobody looks at any more."""
        if self._trial().get("state") == "running":
            self._end()

    def draw(self, cells: int, height: int) -> list[Line]:
        """Return the edit, what it has found, and the command that applies it."""
        trial = self._trial()
        lines = [
            line((f"{'topic':<8}", MUTED), (printable(self._topic, 240), self._style("topic"))),
            line((f"{'now':<8}", MUTED), text(self._rule.get("where"), 480) or "no where: all"),
            line((f"{'edited':<8}", MUTED), (self._where or "no where: all", self._style("where"))),
            [],
        ]
        lines += self._result_lines(trial, cells - 4)
        if self._edits():
            lines += [[], line(("to apply it, on the gateway's machine (y copies it):", MUTED))]
            command = printable(self.command(), 1_200)
            width = max(20, cells - 8)
            parts = [command[at : at + width] for at in range(0, len(command), width)]
            lines += [line((f"  {each}", "accent")) for each in parts]
        lines += [[], *_differences(trial, self.session.now)]
        old = self.old(self._found(), self.session.now) if trial else ""
        over = trial.get("state") == "over"
        shown = dimmed(lines, "" if over or old == "asking…" else old)
        return box(f"rule {self.name()}", shown, cells, height, _state(trial))

    def _result_lines(self, trial: Document, cells: int) -> list[Line]:
        if self._began is None:
            return [line(("e edits it: nothing is sent, and the rule stays as it is", MUTED))]
        answer = self.answer(self._began)
        if not trial:
            if answer.error:
                return [line((f"✕ {answer.error}", "bad"))]
            return [line(("the trial begins…", MUTED))]
        return _sides(trial, cells)

    def _style(self, key: str) -> str:
        return "accent" if key in self._edits() else "text"

    def _edits(self) -> dict[str, str | None]:
        """Return the keys that are other than they are; None for one that is left out."""
        found: dict[str, str | None] = {}
        if self._topic != (self._rule.get("topic") or ""):
            found["topic"] = self._topic
        if self._where != (self._rule.get("where") or ""):
            found["where"] = self._where or None
        return found

    def _found(self) -> Query:
        return query("rule/trial", 1.0, name=TRIAL)

    def _trial(self) -> Document:
        """Return what the newest answer has of the trial that was begun last."""
        if self._began is None:
            return {}
        begun, newer = self.answer(self._began), self.answer(self._found())
        if begun.at is None or begun.sent_at is not None or begun.error:
            return {}
        later = newer.at is not None and newer.at > begun.at
        trial = (newer if later else begun).document.get("trial")
        return trial if isinstance(trial, dict) else {}

    def _edit_where(self) -> None:
        self._prompt("where: ", self._where, where_problem, "_where", optional=True)

    def _edit_topic(self) -> None:
        self._prompt("topic: ", self._topic, filter_problem, "_topic")

    def _prompt(
        self,
        prompt: str,
        begin: str,
        check: Callable[[str], str],
        name: str,
        *,
        optional: bool = False,
    ) -> None:
        def accept(typed: str) -> None:
            words = typed.strip()
            problem = ACCEPTED if optional and not words else check(words)
            if problem != ACCEPTED:
                self.session.tell(f"{prompt}{problem}", good=False)
                return
            setattr(self, name, words)
            if self._edits():
                self._begin()

        self.session.prompt(prompt, accept, begin, check=check)

    def _begin(self) -> None:
        edits = self._edits()
        self._began = query(
            "rule/try", 0.0, rule=place_of(self._rule), set=edits, seconds=SECONDS, name=TRIAL
        )
        self.session.queries.ask(self._began, self.session.now)

    def _end(self) -> None:
        self.session.do(query("rule/trial", 0.0, name=TRIAL, end=True), "the trial has ended")


def _state(trial: Document) -> str:
    if not trial:
        return "escape: back"
    elapsed = span(number(trial.get("elapsed_seconds")))
    if trial.get("state") == "over":
        why = text(trial.get("reason"), 80)
        return f"over after {elapsed}" + (f": {why}" if why else "")
    return f"running for {elapsed} of {span(number(trial.get('seconds')))}"


def _side(trial: Document, name: str) -> Document:
    side = trial.get(name)
    return side if isinstance(side, dict) else {}


def _sides(trial: Document, cells: int) -> list[Line]:
    """Return what each of the rules passed, in two columns."""
    seen = number(trial.get("messages")) or 0
    sides = [_side(trial, each) for each in ("old", "new")]
    wide = min(30, max(16, (cells - 14) // 2))
    rows = [line((f"{'':<13} {'now':<{wide}} {'edited':<{wide}}", "head"))]
    rows.append(line((f"{'seen':<13} ", MUTED), f"{seen:,.0f} messages"))
    passed: Line = [(f"{'passed':<13} ", MUTED)]
    for side in sides:
        count = number(side.get("messages")) or 0
        part = count / seen if seen else None
        words = f"{count:,.0f}" + (f"  {100 * part:.0f} %" if part is not None else "")
        passed += [
            (f"{words:<{wide - 6}}"[: wide - 6], "text"),
            *gauge(part, 5, "plot"),
            ("  ", "text"),
        ]
    rows.append(passed)
    bytes_a_day = [number(side.get("bytes_a_day")) for side in sides]
    words = "".join(f"{UNKNOWN if n is None else size(int(n)):<{wide}} " for n in bytes_a_day)
    rows.append(line((f"{'bytes a day':<13} ", MUTED), words, _saved(*bytes_a_day)))
    gaps = "".join(f"{_gap(side, wide):<{wide}} " for side in sides)
    rows.append(line((f"{'largest gap':<13} ", MUTED), gaps))
    only = [f"{number(trial.get(each)) or 0:,.0f}" for each in ("only_old", "only_new")]
    rows.append(
        line((f"{'only it passed':<13} ", MUTED), "".join(f"{each:<{wide}} " for each in only))
    )
    return rows


def _saved(before: float | None, after: float | None) -> tuple[str, str]:
    if before is None or after is None or before == after:
        return "", MUTED
    return (
        (f"saves {size(int(before - after))}", "good")
        if after < before
        else (f"costs {size(int(after - before))} more", "warn")
    )


def _gap(side: Document, cells: int) -> str:
    gap = side.get("gap")
    if not isinstance(gap, dict):
        return UNKNOWN
    return printable(f"{span(number(gap.get('seconds')))} {text(gap.get('topic'), 80)}", cells)


def _differences(trial: Document, now: float) -> list[Line]:
    rows = trial.get("differences")
    found = [each for each in rows if isinstance(each, dict)] if isinstance(rows, list) else []
    if not found:
        return []
    lines = [line(("the last messages that only one of them passed, the newest first", "head"))]
    for row in reversed(found):
        at, new = number(row.get("time")), row.get("taken_by") == "new"
        payload = row.get("payload")
        words = text(payload, 120) if isinstance(payload, str) else f"{text(row.get('size'))} bytes"
        lines.append(
            line(
                (f"  {moment(at and at / 1_000, now)} ", MUTED),
                ("+ edited only " if new else "- now only    ", "good" if new else "warn"),
                text(row.get("topic"), 120),
                (f"  {words}", MUTED),
            )
        )
    return lines
