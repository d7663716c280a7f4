"""Now: is all well, and if not, what needs a person; how messages flow; what was before."""

from collections.abc import Mapping, Sequence
from typing import Any

from tui import figures
from tui.figures import uplink_prefix
from tui.line import (
    MUTED,
    Line,
    at_cursor,
    beside,
    box,
    filled,
    fitted,
    gauge,
    line,
    spread,
    width,
)
from tui.plot import plot, stretched
from tui.queries import EVENTS, STATUS, Document, Query, number, query, text
from tui.screens.plots import PLOTS, plot_actions, plots
from tui.screens.topics import NO_MEMORY, TopicDetail, value_of
from tui.series import SPANS
from tui.signs import SIGNS, severity
from tui.subject import Subject
from tui.text import (
    UNKNOWN,
    age,
    amount,
    brief_rate,
    lasting,
    long_span,
    moment,
    outage,
    printable,
    rate,
    size,
    span,
    sparkline,
    wrapped,
)
from tui.topics import Topic
from tui.verdict import DOWN, Finding, brief, event_words
from tui.view import Action, View

READINGS = query("topics", 3.0, match="sensors/#", limit=60)
SAMPLED = ("sensors/#", 5_000)
"""what is sampled, and how many milliseconds apart, where the gateway remembers no topics"""
STEADY = 10
"""messages by which an outbox may differ and neither grows nor shrinks"""
WELL_BELOW = 0.15
"""the part of a gauge below which it has the colour of a warning"""
FRAMED = 16
"""lines from which there is a frame around the faults"""
CARD_YEARS = 10 * 365
LONGEST = 7 * 86_400
LEFT, MIDDLE = 24, 16
"""cells of the flow's parts"""
ARROW = 6
"""cells of an arrow between two boxes"""

PLACES = {"Topics": "topic", "Clients": "client", "Queues": "queue"}
"""what a finding's row is, by the screen that says more of it"""


class Now(View):
    """The screen that is kept open."""

    title = "Now"
    about = "is all well? what needs you, how messages flow, what was before"

    def __init__(self, session: Any) -> None:
        super().__init__(session)
        self._at = 0
        self._found: list[Finding] = []
        self._first = 0
        """the line of the first fault"""
        self._rows_of: list[int] = []
        """which fault is on each line from there"""

    def queries(self) -> list[Query]:
        """Return the queries for readings and for the plots."""
        step = SPANS[self.session.span][0]
        return [STATUS, self.session.courses[step].query(), READINGS, EVENTS]

    def sampling(self) -> tuple[str, int] | None:
        """Return a sample where the gateway remembers no topics, or does not answer."""
        answer = self.answer(READINGS)
        return (
            SAMPLED if NO_MEMORY in answer.error or (answer.error and answer.at is None) else None
        )

    def actions(self) -> Sequence[Action]:
        """Return what can be done here."""
        found = []
        if self._found:
            found.append(Action("enter", "open", self._enter, "⏎"))
            found += [
                Action(key, "next", lambda: self._move(1), quiet=True) for key in ("down", "j")
            ]
            found += [
                Action(key, "previous", lambda: self._move(-1), quiet=True) for key in ("up", "k")
            ]
        found.append(Action("m", "mark as seen", self.session.mark_seen))
        found += plot_actions(self.session)
        shown = {"enter", "m", "]"}
        return sorted(found, key=lambda each: each.key not in shown)

    def subject(self) -> Subject | str | None:
        """Return what the fault at the cursor is about."""
        if not self._found:
            return None
        found = self._found[min(self._at, len(self._found) - 1)]
        if found.place in PLACES and found.row:
            return Subject(PLACES[found.place], found.row)
        return "why: enter opens the screen that says more of this"

    def click(self, y: int) -> None:
        """Go to what needs a person at this line."""
        if 0 <= y - self._first < len(self._rows_of):
            self._at = self._rows_of[y - self._first]
            self._enter()

    def draw(self, cells: int, height: int) -> list[Line]:
        """Return as much as there is room for, the verdict first."""
        now = self.session.now
        self._found = self.session.findings()
        self._at = min(self._at, max(0, len(self._found) - 1))
        lines = self._verdict(cells, height)
        flow = self._boxes(cells) if cells >= 120 and height >= 30 else self._flow(cells)
        lines += filled(flow, cells, len(flow))
        left = height - len(lines)
        if left >= 6:
            tall = min(16, max(6, left // 3 + 1)) if left >= 11 else left
            count = 1 if cells < 60 else 2 if cells < 150 else 3
            lines += plots(self, cells, tall, PLOTS[:count])
            left = height - len(lines)
        if left >= 3:
            lines += self._below(cells, left, now)
        return filled(lines, cells, height)

    # The verdict

    def _verdict(self, cells: int, height: int) -> list[Line]:
        found = self._found
        if not found and not self._known():
            self._first = 0
            return [fitted(line(("  is all well? not known yet", MUTED)), cells)]
        if not found:
            self._first = 0
            words = "✔ nothing needs you"
            if self._answers_unknown():
                words = "✔ no alarm, and uplinks are up; only operators see more"
            return [fitted(line((f"  {words}", "good")), cells)]
        inner = cells - 4 if height >= FRAMED else cells
        most = max(3, height // 4)
        rows, count = self._found_rows(inner, most)
        if height < FRAMED:
            self._first = 0
            return rows
        self._first = 1
        title = "1 thing needs you" if len(found) == 1 else f"{len(found)} things need you"
        worst = "bad" if any(each.severity == "error" for each in found) else "warn"
        hidden = len(found) - count
        right = f"and {hidden} more" if hidden > 0 else "⏎ goes there"
        return box(line((title, worst)), rows, cells, len(rows) + 2, right, worst)

    def _found_rows(self, cells: int, most: int) -> tuple[list[Line], int]:
        """Return at most so many lines about faults, and of how many.

        Those before the cursor are left out where there are too many.
        """
        drawn = [self._found_one(index, cells, most) for index in range(len(self._found))]
        first = self._at
        while first and sum(map(len, drawn[first - 1 : self._at + 1])) <= most:
            first -= 1
        rows: list[Line] = []
        self._rows_of, last = [], first
        while last < len(drawn) and (not rows or len(rows) + len(drawn[last]) <= most):
            rows += drawn[last]
            self._rows_of += [last] * len(drawn[last])
            last += 1
        return rows, last - first

    def _found_one(self, index: int, cells: int, most: int) -> list[Line]:
        """Return a fault's lines; on a narrow screen only that at the cursor has several."""
        each, wide, here = self._found[index], cells >= 60, index == self._at
        sign, style = severity(each.severity)
        name = f"{each.subject:<9.24} " if wide else f"{each.subject:.12} "
        head = line((f"{sign} ", style), (name, "head"))
        whole = wide or here
        words = wrapped(each.words, cells - width(head))[:most] if whole else [each.words]
        lines = [fitted([*head, (words[0], "text")], cells)]
        indent = " " * width(head)
        lines += [fitted(line(indent + more), cells) for more in words[1:]]
        return [at_cursor(one) for one in lines] if here else lines

    def _known(self) -> bool:
        state = self.session.state
        numbers = state.uptime is not None or bool(state.figures.uplinks())
        return numbers or not self._answers_unknown()

    def _answers_unknown(self) -> bool:
        return self.session.queries.get(STATUS).at is None

    # The flow

    def _numbers(self) -> dict[str, str]:
        state, count = self.session.state, self.session.state.figures.count
        status = self.answer(STATUS).document
        connected, offline = state.clients(status)
        rows, oldest = count(figures.OUTBOX_ROWS), state.figures.number(figures.OUTBOX_OLDEST)
        total = self.answer(READINGS).number("total")
        return {
            "in": rate(state.incoming()),
            "out": rate(state.outgoing()),
            "clients": amount(connected),
            "offline": amount(offline),
            "rows": amount(rows),
            "oldest": lasting(oldest) if rows or rows is None else "nothing waits",
            "bytes": size(count(figures.OUTBOX_BYTES)),
            "capacity": outage(state.survives(status)),
            "topics": amount(len(self._topics()) if total is None else int(total)),
            "silent": amount(self.session.silent()),
            "readings": rate(state.rates.get(figures.BRIDGE_READINGS)),
        }

    def _uplinks(self, cells: int) -> list[Line]:
        """Return a line for each uplink: its own state, what it delivers, what waits for it."""
        state = self.session.state
        uplinks = state.uplinks(self.answer(STATUS).document)
        longest = min(16, max((len(each.called) for each in uplinks), default=0))
        lines = []
        for each in uplinks:
            sign, style = SIGNS.get(each.state, ("?", MUTED))
            called = printable(each.called, 16)
            shown = line((f"{sign} ", style), (f"{called:<{longest}} ", "head"))
            acknowledged = state.rates.get(uplink_prefix(each.name) + "acknowledged")
            if each.state == "connected":
                words = f"{amount(each.waiting)} behind"
                shown += line(f"{rate(acknowledged)} ", (words, MUTED))
            else:
                stopped = each.state in DOWN  # its rate is that of before
                delivered = f" {rate(acknowledged)}" if acknowledged and not stopped else ""
                words = f"{delivered} {amount(each.waiting)} wait"
                shown += line((each.state or UNKNOWN, style), (words, MUTED))
                attempt = line((f", next try in {span(each.attempt)}", MUTED))
                if each.attempt is not None and width(shown) + width(attempt) <= cells:
                    shown += attempt  # the verdict says it, too
            lines.append(shown)
        none = "no uplink" if self._known() else UNKNOWN
        return lines or [line((none, MUTED))]

    def _flow(self, cells: int) -> list[Line]:
        numbers = self._numbers()
        if cells < 70:
            return self._flow_in_lines(numbers, cells - 1)
        across = cells - LEFT - MIDDLE - 8
        uplinks = self._uplinks(across)
        left = [
            line(
                (" in ", MUTED),
                (f"{numbers['in']:<9}", "accent"),
                ("out ", MUTED),
                numbers["out"],
            ),
            line((f" {_clients(numbers, LEFT - 1)}", MUTED)),
        ]
        middle = [
            line(
                ("outbox ", MUTED),
                (f"{numbers['rows']}", "accent"),
                (f" {self._tendency()}", "warn"),
            ),
            line((f"{numbers['oldest']}", MUTED)),
        ]
        height = max(2, len(uplinks))
        arrows = [" ─▶ " if n == 0 else "    " for n in range(height)]
        forks = [_fork(n, len(uplinks)) for n in range(height)]
        return beside(
            filled(left, LEFT, height),
            [line((each, "plot")) for each in arrows],
            filled(middle, MIDDLE, height),
            [line((each, "plot")) for each in forks],
            filled(uplinks, across, height),
        )

    def _flow_in_lines(self, numbers: Mapping[str, str], across: int) -> list[Line]:
        """Return the same one below the other, for a narrow screen."""
        first = line(
            (" in ", MUTED),
            numbers["in"],
            ("  out ", MUTED),
            numbers["out"],
            ("  clients ", MUTED),
            numbers["clients"],
        )
        outbox = line((" outbox ", MUTED), numbers["rows"], ("  oldest ", MUTED), numbers["oldest"])
        return [first, outbox, *[[(" ", "text"), *each] for each in self._uplinks(across)]]

    def _tendency(self) -> str:
        """Return whether the outbox grows or shrinks, by what was in it 10 to 20 s ago."""
        course = self.session.courses[SPANS[0][0]].values("outbox_messages")
        before = course[-10] if len(course) >= 10 else None
        now = self.session.state.figures.count(figures.OUTBOX_ROWS)
        if before is None or now is None or abs(now - before) <= max(STEADY, before * 0.05):
            return ""
        return "▲" if now > before else "▼"

    def _boxes(self, cells: int) -> list[Line]:
        numbers = self._numbers()
        last = (cells - 3 * ARROW) * (40 if cells >= 150 else 35) // 100
        each_cells = (cells - 3 * ARROW - last) // 3
        last = cells - 3 * ARROW - 3 * each_cells
        uplinks = self._uplinks(last - 4)
        height = max(5, len(uplinks) + 2)
        source = [
            line(f"{_plural(numbers['topics'], 'topic')}, {numbers['silent']} silent"),
            line(("readings ", MUTED), numbers["readings"]),
            line(("in       ", MUTED), (numbers["in"], "accent")),
        ]
        broker = [
            line(("out      ", MUTED), (numbers["out"], "accent")),
            line(_clients(numbers, each_cells - 4)),
            self._filtered(),
        ]
        up = self.session.state.rates.get(figures.ACKNOWLEDGED)
        incoming = self.session.state.incoming()
        return beside(
            box("SOURCES", source, each_cells, height),
            _arrow("" if incoming is None else brief_rate(incoming), height),
            box("BROKER", broker, each_cells, height),
            _arrow("", height),
            box("OUTBOX", self._outbox(numbers, each_cells - 4), each_cells, height),
            _arrow("" if up is None else brief_rate(up), height),
            box("FLEET", uplinks, last, height),
        )

    def _outbox(self, numbers: Mapping[str, str], cells: int) -> list[Line]:
        waiting = f"{numbers['rows']} messages {self._tendency()}"
        octets = f" {numbers['bytes']}"
        fits = len(waiting) + len(octets) <= cells
        return [
            line(waiting, (octets if fits else "", MUTED)),
            line(("oldest   ", MUTED), "none" if numbers["rows"] == "0" else numbers["oldest"]),
            line(("capacity ", MUTED), numbers["capacity"]),
        ]

    def _filtered(self) -> Line:
        matched, dropped = (
            self.session.state.figures.number(each)
            for each in (figures.RULES_MATCHED, figures.RULES_FILTERED)
        )
        if not matched or dropped is None:
            return line(("filtered ", MUTED), UNKNOWN)
        return line(("filtered ", MUTED), f"{100 * min(1.0, dropped / matched):.0f} %")

    # Readings, gauges, events

    def _below(self, cells: int, height: int, now: float) -> list[Line]:
        wide = cells >= 70
        if wide and height >= 19:
            courses = self._courses(cells, min(14, height - 10))
            if courses:
                return courses + self._below_courses(cells, height - len(courses), now)
        return self._below_courses(cells, height, now)

    def _courses(self, cells: int, height: int) -> list[Line]:
        """Return plots of readings, silent ones and those that changed most first."""
        topics = [each for each in self._topics() if len(each.recent) >= 3]
        topics.sort(key=lambda each: (not each.silent, -_change(each.numbers()), each.name))
        count = min(len(topics), cells // 48)
        parts = []
        for index, each in enumerate(sorted(topics[:count], key=lambda topic: topic.name)):
            wide = cells // count + (index < cells % count)
            begin, end = each.recent[0][0], each.recent[-1][0]
            drawn = plot(
                stretched(each.numbers(), 2 * wide), wide - 4, height - 2, begin, end, zero=False
            )
            sign = "! " if each.silent else ""
            title = line(
                (sign, "warn"), (printable(each.name.removeprefix("sensors/"), 60), "head")
            )
            parts.append(box(title, drawn, wide, height, value_of(each)))
        return beside(*parts) if parts else []

    def _topics(self) -> list[Topic]:
        return [each for each in self.session.state.topics if each.name.startswith("sensors/")]

    def _below_courses(self, cells: int, height: int, now: float) -> list[Line]:
        wide = cells >= 70
        readings = self._readings(
            max(1, height - 2), now, (cells if not wide else cells * 3 // 5) - 4
        )
        if not wide:
            return box("readings", readings, cells, height)
        left = cells * 3 // 5
        gauges = self._gauges(cells - left - 4)
        right_height = min(height, len(gauges) + 2)
        right = box("capacity", gauges, cells - left, right_height)
        if height - right_height >= 3:
            seen = self.session.unseen()
            title = f"since you last looked: {seen} new" if seen else "lately"
            right += box(
                title,
                self._events(height - right_height - 2, now),
                cells - left,
                height - right_height,
                "m: seen" if seen else "",
            )
        else:
            right = box("capacity", gauges, cells - left, height)
        return beside(box("readings", readings, left, height), right)

    def _readings(self, count: int, now: float, cells: int) -> list[Line]:
        topics = self._topics()
        topics.sort(key=lambda each: (not each.silent, each.name))
        lines = [self._reading(each, now, cells) for each in topics[:count]]
        return lines or [line((self._why_empty(), MUTED))]

    def _why_empty(self) -> str:
        if "sensors/#" in self.session.refusals:
            return "you may not read sensors/#"
        if not self.session.is_connected:
            return "no connection"
        return "no message on sensors/# yet"

    def _reading(self, topic: Topic, now: float, cells: int) -> Line:
        style = "warn" if topic.silent else "text"
        sign = "! " if topic.silent else "  "
        course = sparkline(topic.numbers(), 12) if cells >= 56 else ""
        right = line((f"{value_of(topic):>14.20}", "accent"), (f" {age(topic.age(now)):>4}", MUTED))
        if cells >= 56:
            right.append((f" {course:<12}", "plot"))
        name = printable(topic.name.removeprefix("sensors/"), 120)
        return spread(line((sign, style), (name, style)), right, cells)

    def _gauges(self, cells: int) -> list[Line]:
        state = self.session.state.figures
        survives = self.session.state.survives(self.answer(STATUS).document)
        card = state.count(figures.CARD_DAYS)
        matched, dropped = (
            state.number(figures.RULES_MATCHED),
            state.number(figures.RULES_FILTERED),
        )
        lost = self.session.state.lost
        bar = 10 if cells >= 34 else 6
        rows: list[Line] = []
        rows.append(
            _gauge(
                "outage",
                outage(survives),
                None if survives is None else survives / LONGEST,
                bar,
            )
        )
        if card:
            rows.append(_gauge("card", long_span(card), card / CARD_YEARS, bar))
        if matched:
            part, saved = (dropped or 0.0) / matched, size(state.count(figures.RULES_SAVED))
            words = f"{100 * part:.0f} % filtered"
            words += f", {saved}" if len(words) + len(saved) + 11 + bar <= cells else ""
            rows.append([*line((f"{'rules':<7}", MUTED), words), *gauge(part, bar, "plot")])
        disk = number(self.answer(STATUS).document.get("free_bytes"))
        if disk is not None:
            rows.append(line((f"{'disk':<7}", MUTED), f"{size(int(disk))} free"))
        memory, limit = (
            number(self.answer(STATUS).document.get(each))
            for each in ("memory_bytes", "memory_limit")
        )
        if memory is not None and limit:
            rows.append(_gauge("memory", f"{size(int(memory))} used", 1 - memory / limit, bar))
        rows.append(line((f"{'lost':<7}", MUTED), (amount(lost), "bad" if lost else "text")))
        return [_aligned(each, cells, bar) for each in rows]

    def _events(self, count: int, now: float) -> list[Line]:
        seen, rows = self.session.seen_until(), self.answer(EVENTS).rows()[:count]
        return [_event_line(row, seen, now) for row in rows] or [
            line((self.old(EVENTS, now) or "nothing happened", MUTED))
        ]

    def _move(self, by: int) -> None:
        self._at = min(max(0, self._at + by), max(0, len(self._found) - 1))

    def _enter(self) -> None:
        if not self._found:
            return
        found = self._found[self._at]
        if found.place == "Topics" and found.row:
            self.session.open(TopicDetail(self.session, found.row))
        else:
            self.session.go(found.place, found.row)


def _change(numbers: Sequence[float]) -> float:
    """Return by how much numbers differ, as a part of their size."""
    size_of = max(abs(each) for each in numbers)
    return (max(numbers) - min(numbers)) / size_of if size_of else 0.0


def _clients(numbers: Mapping[str, str], cells: int) -> str:
    """Return how many clients are connected and how many are not, in so many cells if it fits."""
    offline = f"{numbers['offline']} offline"
    words = f"{_plural(numbers['clients'], 'client')}, {offline}"
    return words if len(words) <= cells else f"{numbers['clients']} up, {offline}"


def _plural(count: str, word: str) -> str:
    return f"{count} {word}" if count == "1" else f"{count} {word}s"


def _gauge(name: str, words: str, part: float | None, cells: int) -> Line:
    style = "good" if part is None or part > WELL_BELOW else "warn"
    return [(f"{name:<7}", MUTED), (words, "text"), *gauge(part, cells, style)]


def _aligned(shown: Line, cells: int, bar: int) -> Line:
    """Return a gauge's line with its bar at the right end."""
    if len(shown) < 4:
        return shown
    head, end = shown[:-2], shown[-2:]
    return [*fitted(head, max(0, cells - bar - 1)), (" ", "text"), *end]


def _event_line(row: Document, seen: int, now: float) -> Line:
    at = number(row.get("time"))
    sign, style = severity(text(row.get("severity")))
    when = moment(at and at / 1_000, now)
    new = (number(row.get("id")) or 0) > seen
    return line(
        (f"{when[:-3] if len(when) == 8 else when} ", "accent" if new else MUTED),
        (f"{sign} ", style),
        f"{text(row.get('subject'), 40)} ",
        (brief(event_words(row, 160)), MUTED),
    )


def _fork(index: int, count: int) -> str:
    """Return the arrow between the outbox and one of so many uplinks."""
    if index >= count:
        return "    "
    if count <= 1:
        return " ─▶ "
    return " ┬▶ " if index == 0 else " └▶ " if index == count - 1 else " ├▶ "


def _arrow(words: str, height: int) -> list[Line]:
    """Return an arrow in the middle of so many lines, and the words below it."""
    lines = [" " * ARROW] * height
    middle = height // 2
    lines[middle : middle + 2] = " ──▶  ", f"{words:^{ARROW}.{ARROW}}"
    return [line((each, "plot")) for each in lines]
