"""Topics: a live tree of everything that one may read, and one topic in detail."""

import json
from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from typing import Any

from tui.line import MUTED, Line, beside, box, line
from tui.plot import plot, stretched
from tui.queries import Document, Query, number, query
from tui.state import GatewayState
from tui.subject import Subject
from tui.table import Column, Table, filter_of
from tui.text import (
    UNKNOWN,
    age,
    amount,
    brief_rate,
    moment,
    printable,
    rate,
    size,
    span,
    sparkline,
)
from tui.topics import Branch, Topic, Topics, TopicTree
from tui.view import Action, View

PAGE = 500
"""topics of one answer; the gateway ends a page before 64 KiB"""
IN_VIEW = 200
"""topics of an answer about what is in view"""
FRESH, REST = 2.0, 15.0
"""seconds between two answers about what is in view, and two pages of all once all are known"""
OLD = 6.0
"""seconds after which what the gateway said of a topic is not shown as if it were so now"""
YOUNG = 5.0
"""seconds below which an age is shown as `<5s`"""
EVERY = 1_000
"""milliseconds between two sampled messages of a topic"""
COUNTED = ("messages", "evaluated", "passed")
"""what is counted of a `$where`: messages on its topic filter, evaluations, and which passed"""
Count = tuple[float, list[float]]
WIDE = 100
"""cells from which the title says all of what a `$where` costs"""
ANSWERS = 11
"""answers over which the cost of a `$where` is measured, a second apart"""
FORMS = ("json", "hex", "text", "difference", "history")
"""how a payload is shown; `history`: the last numbers"""
NO_MEMORY = "remembered_topics"
"""what the gateway's refusal names when it remembers no topics"""


class TopicsScreen(View):
    """The tree; the gateway's memory of topics if it has one, else a sample of what comes."""

    title = "Topics"
    about = "a live tree of everything that you may read"
    marks = True

    def __init__(self, session: Any) -> None:
        super().__init__(session)
        self.table: Table[Branch] = Table(
            self._columns(), lambda row: row.path, empty="no message yet"
        )
        self._tree = TopicTree()
        self._opened: set[str] = set()
        self._known = False
        self._filter = "#"
        self._next = 0
        self._sorted: tuple[object, list[str]] = (None, [])
        self._counted: deque[Count] = deque(maxlen=ANSWERS)
        """when answers arrived, and the counts of the `$where` in them"""
        self._first_counts: list[float] = []
        self._complete = False
        """whether all pages have come, so that what is not in view may wait"""

    def _columns(self) -> Sequence[Column[Branch]]:
        return [
            Column("TOPIC", 0, self._name),
            Column("VALUE", 16, self._value, right=True),
            Column("AGE", 4, lambda row: (age(self._age(row)), MUTED), right=True),
            Column("EVERY", 6, _every, right=True, least=60),
            Column("/S", 6, _rate, right=True, least=50),
            Column("R", 1, lambda row: "R" if row.topic and row.topic.retained else " ", least=60),
            Column("COURSE", 16, _course, least=76),
            Column(
                "FROM", 22, lambda row: (row.topic.publisher if row.topic else "", MUTED), least=130
            ),
        ]

    def _pages(self) -> Query:
        every = REST if self._complete else FRESH
        return query("topics", every, match=self._filter, offset=self._next, limit=PAGE)

    def _in_view(self) -> list[Query]:
        """Return the query for the topics in view, which lie side by side in their order."""
        shown = [each.topic.name for each in self.table.in_view() if each.topic is not None]
        if not shown:
            return []
        first, last = (bisect_left(self._names(), each) for each in (min(shown), max(shown)))
        begin = first // 10 * 10  # in tens, since another place is asked for at once
        limit = min(IN_VIEW, (last - begin) // 10 * 10 + 10)
        return [query("topics", FRESH, match=self._filter, offset=begin, limit=limit)]

    @property
    def _topics(self) -> Topics:
        """The topics that are shown: all, or those of messages that passed the `$where`."""
        state: GatewayState = self.session.state
        return state.passing if self.where else state.topics

    @property
    def _key(self) -> object:
        return self.where, self._topics.revision, self._filter

    def _names(self) -> list[str]:
        """Return the topics that pass the filter, in the gateway's order."""
        if self._sorted[0] != self._key:
            names = sorted(each.name for each in self._topics)
            if self._filter != "#":
                from gateway.mqtt.topics import topic_matches

                names = [each for each in names if topic_matches(self._filter, each)]
            self._sorted = self._key, names
        return self._sorted[1]

    def _shown(self) -> list[Topic]:
        """Return the topics that pass the filter, sorted by their names."""
        found = map(self._topics.get, self._names())
        return [each for each in found if each is not None]

    def _own(self) -> Query:
        return query("client", 1.0, id=self.session.client.client_id)

    def _passing(self, cells: int) -> str:
        """Return how many messages pass the `$where`, and what that costs, as the gateway says."""
        answer = self.answer(self._own())
        for row in answer.rows("subscriptions"):
            if row.get("where") == self.where and answer.at is not None:
                counts = [number(row.get(each)) or 0.0 for each in COUNTED]
                if not self._counted or self._counted[-1][0] != answer.at:
                    self._counted.append((answer.at, counts))
                return self._cost(row, cells)
        return ""

    def _cost(self, row: Document, cells: int) -> str:
        (before, counts), (now, last) = self._counted[0], self._counted[-1]
        first = self._first_counts = self._first_counts or counts
        messages, evaluated, passed = (b - a for a, b in zip(first, last, strict=True))
        if messages <= 0:
            return ""
        share = min(1.0, passed / messages)
        words = f" · {amount(int(passed))} of {amount(int(messages))} pass, {100 * share:.0f} %"
        search = number(row.get("index_microseconds"))
        if search is None:
            return words
        each = search + (number(row.get("microseconds")) or 0.0) * min(1.0, evaluated / messages)
        words += f" · {each:.1f} µs a message"
        if now > before and cells >= WIDE:
            rate = (last[0] - counts[0]) / (now - before)
            words += f", {rate * each / 10_000:.2g} % of a core"
        return words

    def remembered(self) -> bool | None:
        """Return whether the gateway remembers topics; None before it has said so."""
        answer = self.session.queries.get(self._pages())
        if NO_MEMORY in answer.error or "no such query" in answer.error:
            return False
        if answer.error and answer.at is None:
            return False
        return True if len(self.session.state.topics) or answer.at is not None else None

    def queries(self) -> list[Query]:
        """Return the next page of topics."""
        if self.where:
            return [self._own()]
        answer = self.answer(self._pages())
        if answer.at is None or (self._complete and self.session.now - answer.at < REST):
            return [self._pages(), *(self._in_view() if self._complete else [])]
        following = answer.number("next")
        if following is not None and self._next + PAGE < self.session.state.topics.limit:
            self._next = int(following)
        elif self._next:
            self._next, self._complete = 0, True
        return [self._pages()]

    def sampling(self) -> tuple[str, int] | None:
        """Return a sample where the gateway remembers nothing."""
        return (self._filter, EVERY) if self.where or self.remembered() is False else None

    def actions(self) -> Sequence[Action]:
        """Return what can be done with the topic at the cursor."""
        found = [Action("enter", "open", self._enter, "⏎")]
        found.append(Action("$", "where", self._ask_where))
        found.append(Action("f", "topic filter", self._ask_filter))
        found += [
            Action("right", "open branch", self._open, "→", quiet=True),
            Action("left", "close branch", self._close, "←", quiet=True),
            Action("l", "open branch", self._open, quiet=True),
            Action("h", "close branch", self._close, quiet=True),
            Action("X", "clear retained", self._clear, prompts=True),
            Action("P", "publish", self._publish, prompts=True),
        ]
        return found

    def subject(self) -> Subject | str | None:
        """Return the topic at the cursor."""
        branch = self.table.current
        if branch is None or branch.topic is not None:
            return Subject("topic", branch.topic.name) if branch and branch.topic else None
        return "why: this is a branch; open it, and choose one of its topics"

    def draw(self, cells: int, height: int) -> list[Line]:
        """Return the tree."""
        topics = self._shown()
        wanted = None
        if self.table.filter:
            lets_through = filter_of(self.table.filter)
            wanted = frozenset(each.name for each in topics if lets_through(each.name))
        roots = self._tree.make(self._key, topics)
        if not self._known and roots:
            self._known = True
            self._open_first(list(roots.values()), topics, 2 * height)
        words, self.table.filter = self.table.filter, ""
        self.table.fill(self._tree.visible(self._opened, wanted))
        self.table.filter = words
        heads = self._heads(topics, len(topics) if wanted is None else len(wanted), cells)
        return box(heads, self.table.draw(cells - 4, height - 2), cells, height, self._source())

    def _open_first(self, roots: Sequence[Branch], topics: Sequence[Topic], most: int) -> None:
        """Open the first branches, or all of them if there are at most so many topics."""
        self._opened |= {branch.path for branch in roots[:3]}
        if len(topics) > most:
            return
        for each in topics:
            parts = each.name.split("/")
            self._opened |= {"/".join(parts[:n]) for n in range(1, len(parts))}

    def _heads(self, topics: Sequence[Topic], shown: int, cells: int) -> Line:
        """Return how many topics are shown and silent, and by which filters."""
        of = f" of {len(topics):,}" if self.table.filter else ""
        heads = line((f"topics {shown:,}{of}", "head"))
        silent = sum(each.silent for each in topics)
        if silent:
            heads.append((f" · {silent} silent", "warn"))
        if self._filter != "#":
            heads.append((f" · {printable(self._filter, 60)}", "accent"))
        if self.where:
            heads.append((self._passing(cells), "head"))
            heads.append((f" · $where {printable(self.where, 80)}", "accent"))
        return heads

    def _source(self) -> str:
        topics, answer = self._topics, self.answer(self._pages())
        if topics.dropped or topics.refused:
            return f"{topics.dropped} more not listed, {topics.refused} too long"
        total = answer.number("total")
        if total is not None and total > topics.limit:
            return f"{topics.limit:,} of {total:,.0f} listed: f narrows them"
        if self.session.flooded == self._filter:
            return "more comes than can be sampled: f narrows it"
        if self.where:
            return f"what passes, each topic at most every {self.session.sampling_every / 1000:g}s"
        if self.remembered() is False:
            error = self.answer(self._pages()).error
            why = f"no {NO_MEMORY}" if NO_MEMORY in error else error
            return f"sampled each {self.session.sampling_every / 1000:g}s: {why}"
        return self.old(self._pages(), self.session.now)

    def _is_old(self, branch: Branch) -> bool:
        """Return whether what is known of a topic was so a while ago."""
        topic = branch.topic
        return self._complete and topic is not None and self.session.now - topic.known > OLD

    def _age(self, branch: Branch) -> float | None:
        if self._is_old(branch):
            return None
        updated = branch.topic.updated if branch.topic else branch.updated()
        if updated is None:
            return None
        found = max(0.0, self.session.now - updated)
        if branch.topic is None and found >= YOUNG and self._has_old(branch):
            return None  # one of its topics may have had a message meanwhile
        return found

    def _has_old(self, branch: Branch) -> bool:
        """Return whether what is known of a topic in a branch was so a while ago."""
        now = self.session.now
        return self._complete and any(now - each.known > OLD for each in branch.below)

    def _name(self, branch: Branch) -> tuple[str, str]:
        mark = " "
        if branch.children:
            mark = "▾" if branch.path in self._opened or self.table.filter else "▸"
        silent = branch.topic.silent if branch.topic else bool(branch.silent())
        sign = "! " if silent else ""
        style = "warn" if silent else "text"
        return "  " * min(branch.depth, 12) + f"{mark} {sign}{branch.label}", style

    def _value(self, branch: Branch) -> tuple[str, str]:
        if branch.topic is not None and not (branch.children and not branch.topic.messages):
            return value_of(branch.topic), MUTED if self._is_old(branch) else "text"
        silent = branch.silent()
        words = f"{len(branch.below):,} topic{'s' if len(branch.below) != 1 else ''}"
        return (f"{len(branch.below):,} · {silent} silent" if silent else words), "muted"

    def _enter(self) -> None:
        branch = self.table.current
        if branch is None:
            return
        if branch.topic is not None:
            self.session.open(TopicDetail(self.session, branch.topic.name))
        elif branch.path in self._opened:
            self._close()
        else:
            self._open()

    def _open(self) -> None:
        if self.table.current is not None and self.table.current.children:
            self._opened.add(self.table.current.path)

    def _close(self) -> None:
        branch = self.table.current
        if branch is None:
            return
        if branch.path in self._opened and branch.children:
            self._opened.discard(branch.path)
        else:
            self.table.point_at(branch.path.rpartition("/")[0])

    def _ask_filter(self) -> None:
        self.session.prompt("topic filter: ", self._on_filter, self._filter)

    def _ask_where(self) -> None:
        self.session.prompt("$where: ", self._on_where, self.where, check=where_problem)

    def _on_where(self, text: str) -> None:
        problem = where_problem(text)
        if text.strip() and problem != ACCEPTED:
            self.session.tell(f"$where: {problem}", good=False)
            return
        self.where = text.strip()
        self._next, self._complete = 0, False
        self._known = False
        self._counted.clear()
        self._first_counts = []
        self.session.state.filter(self.where)

    def _on_filter(self, text: str) -> None:
        self._filter = text.strip() or "#"
        self._next, self._complete = 0, False
        self._known = False
        self.session.state.topics.clear()
        self.session.state.passing.clear()

    def _clear(self) -> None:
        chosen = self.table.chosen()
        names = [each.topic.name if each.topic else each.path + "/#" for each in chosen]
        if names:
            clear_retained(self.session, *names)

    def _publish(self) -> None:
        branch = self.table.current
        publish(self.session, branch.path if branch is not None else "")


class TopicDetail(View):
    """One topic: its course, its last message in full, where it comes from and goes."""

    title = "topic"

    def __init__(self, session: Any, name: str) -> None:
        super().__init__(session)
        self._name = name
        self._query = query("topic", 1.0, topic=name)
        self._big = False
        self._form = 0

    def name(self) -> str:
        """Return the topic."""
        return self._name

    def queries(self) -> list[Query]:
        """Return the query for this topic."""
        return [self._query]

    def sampling(self) -> tuple[str, int] | None:
        """Return a sample where the gateway does not remember it."""
        remembered = self.answer(self._query).document.get("remembered")
        return None if remembered else (self._name, EVERY)

    def actions(self) -> Sequence[Action]:
        """Return what can be done with it."""
        return [
            Action("b", "big", self._make_big),
            Action("v", "hex/text/difference/history", self._next_form),
            Action(
                "X",
                "clear retained",
                lambda: clear_retained(self.session, self._name),
                prompts=True,
            ),
            Action("P", "publish", lambda: publish(self.session, self._name), prompts=True),
        ]

    def subject(self) -> Subject:
        """Return this topic."""
        return Subject("topic", self._name)

    def draw(self, cells: int, height: int) -> list[Line]:
        """Return everything about it."""
        now = self.session.now
        answer = self.answer(self._query)
        row = answer.document.get("topic")
        sent = answer.number("time")
        if isinstance(row, dict) and sent is not None and answer.at is not None:
            self.session.state.topics.tell([row], sent / 1_000 - answer.at, answer.at)
        topic = self.session.state.topics.get(self._name)
        if topic is None:
            why = line((self.old(self._query, now) or "no message is known", "warn"))
            return box(printable(self._name, 120), [why], cells, height)
        if self._big:
            return self._draw_big(topic, cells, height, now)
        numbers = topic.numbers()
        top = min(14, height // 2) if numbers and height >= 12 else 0
        lines: list[Line] = []
        if top:
            title = line((printable(self._name, 120), "head"))
            right = topic.reading.unit
            begin, end = topic.recent[0][0], topic.recent[-1][0]
            drawn = plot(stretched(numbers, 2 * cells), cells - 4, top - 2, begin, end, zero=False)
            lines += box(title, drawn, cells, top, right)
        rest = height - len(lines)
        facts = self._facts(topic, now)
        payload = self._payload(topic)
        head = line(
            *[
                (f"[{f}]" if n == self._form else f" {f} ", "accent" if n == self._form else MUTED)
                for n, f in enumerate(FORMS)
            ]
        )
        right = f"{size(topic.size)}" + (" retained" if topic.retained else "")
        if cells >= 90:
            half = min(cells // 2, 64)
            return lines + beside(
                box("what is known", facts, half, rest),
                box(head, payload, cells - half, rest, right),
            )
        first = min(len(facts) + 2, max(3, rest - 5))
        below = rest - first
        return (
            lines
            + box("" if top else printable(self._name, 120), facts, cells, first)
            + (box(head, payload, cells, below, right) if below > 2 else [[]] * below)
        )

    def _facts(self, topic: Topic, now: float) -> list[Line]:
        numbers = topic.numbers()
        pairs = [
            (
                "value",
                f"{value_of(topic)}   {age(topic.age(now))} ago, {moment(topic.updated, now)}",
            ),
            (
                "usual",
                f"every {span_or(topic.interval)} · {rate(topic.rate)} · {topic.messages:,} seen",
            ),
        ]
        if numbers:
            lowest, highest = f"{min(numbers):.7g}", f"{max(numbers):.7g}"
            mean = sum(numbers) / len(numbers)
            pairs.append(("seen", f"{lowest} to {highest}, mean {mean:.5g}, of {len(numbers)}"))
        pairs.append(("from", topic.publisher or UNKNOWN))
        document = self.answer(self._query).document
        for key, name in (("receivers", "to"), ("filtered", "may go to")):
            found = document.get(key)
            if isinstance(found, list):
                words = ", ".join(printable(str(each), 48) for each in found[:12]) or "nobody"
                pairs.append((name, words))
        lines = [line((f"{name:<9} ", MUTED), words) for name, words in pairs]
        if topic.silent:
            lines.insert(0, line((f"! silent for {span(topic.age(now))}", "warn")))
        return lines

    def _payload(self, topic: Topic) -> list[Line]:
        if self._form == 1:
            data = topic.payload
            return [_hex_line(data, at) for at in range(0, min(len(data), 1_024), 16)]
        if self._form == 4:
            return _history(topic, self.session.now)
        if self._form == 3:
            before, after = _pretty(topic.before), _pretty(topic.payload)
            gone = [line((f"- {each}", "bad")) for each in before if each not in after]
            return gone + [
                line((f"  {each}", MUTED) if each in before else (f"+ {each}", "good"))
                for each in after
            ]
        return [
            line(each)
            for each in (_pretty(topic.payload) if self._form == 0 else _text(topic.payload))
        ]

    def _make_big(self) -> None:
        self._big = not self._big

    def _next_form(self) -> None:
        self._form = (self._form + 1) % len(FORMS)

    def _draw_big(self, topic: Topic, cells: int, height: int, now: float) -> list[Line]:
        numbers = topic.numbers()
        rows = big(topic.reading.text, cells - 8)
        lines: list[Line] = [[], *[line(("  " + text, "big")) for text in rows]]
        words = f"  {topic.reading.unit}   {age(topic.age(now))} ago"
        if numbers:
            words += f"   lowest {min(numbers):.7g}   highest {max(numbers):.7g}"
        lines += [[], line((words, "head")), []]
        free = height - 2 - len(lines)
        if numbers and free >= 4:
            lines += plot(
                stretched(numbers, 2 * cells),
                cells - 4,
                free,
                topic.recent[0][0],
                topic.recent[-1][0],
                zero=False,
            )
        return box(printable(self._name, 120), lines, cells, height, "b: small")


DIGITS = {
    "0": "█▀█ █ █ █▄█",
    "1": "▄█   █  ▄█▄",
    "2": "▀▀█ █▀▀ █▄▄",
    "3": "▀▀█  ▀█ ▄▄█",
    "4": "█ █ ▀▀█   █",
    "5": "█▀▀ ▀▀█ ▄▄█",
    "6": "█▀▀ █▀█ █▄█",
    "7": "▀▀█   █   █",
    "8": "█▀█ █▀█ █▄█",
    "9": "█▀█ ▀▀█ ▄▄█",
    "-": "    ▀▀▀    ",
    "+": " ▄  ▀█▀    ",
    ".": "          ▄",
}
"""three rows of three cells each"""


def big(text: str, cells: int) -> list[str]:
    """Return digits that can be read from across a room; other text as it is."""
    if not text or any(each not in DIGITS for each in text):
        return [text]
    rows = ["", "", ""]
    for each in text:
        for row in range(3):
            part = DIGITS[each][row * 4 : row * 4 + 3]
            rows[row] += (part.strip() if each == "." else part).ljust(
                1 if each == "." else 3
            ) + " "
    wide = cells // max(1, len(rows[0])) >= 3
    if wide:
        rows = (
            ["".join(each * 2 for each in row) for row in rows for _ in range(2)]
            if cells > 90
            else ["".join(each * 2 for each in row) for row in rows]
        )
    return rows


ACCEPTED = "✔ accepted"


def where_problem(text: str) -> str:
    """Return what is wrong with a `$where` expression, or that it is accepted."""
    from gateway.where.compile import compile_where
    from gateway.where.language.errors import WhereError

    if not text.strip():
        return "empty: everything"
    try:
        compile_where(text)
    except WhereError as error:
        return printable(str(error), 160)
    return ACCEPTED


def value_of(topic: Topic) -> str:
    """Return the value with its unit."""
    return f"{topic.reading.text} {topic.reading.unit}".strip()


def span_or(seconds: float | None) -> str:
    """Return an interval as `0.3s`, `12s`, `5m 00s`."""
    if seconds is None:
        return UNKNOWN
    return f"{seconds:.1f}s" if seconds < 10 else span(seconds)


def open_topic(session: Any, name: str) -> None:
    """Show one topic."""
    if name:
        session.open(TopicDetail(session, name))
    else:
        session.go("Topics")


def clear_retained(session: Any, *names: str) -> None:
    """Ask, and clear what is retained there."""

    def clear() -> None:
        for name in names:
            wanted = query("retained/clear", 0.0, filter=name)
            session.do(wanted, f"cleared what was retained on {name}")

    where = printable(names[0], 100) if len(names) == 1 else f"{len(names)} topics and branches"
    session.ask(
        f"Clear what is retained on {where}?",
        "Subscribers and the fleet get an empty message for each of up to 1,000 topics.",
        clear,
    )


def publish(session: Any, name: str) -> None:
    """Have a topic and payload typed, and publish them at QoS 1 after a question."""

    def accept(typed: str) -> None:
        topic, _, payload = typed.strip().partition(" ")
        if not topic or "#" in topic or "+" in topic:
            session.tell("publish: a topic without wildcards, a space, the payload", good=False)
            return
        session.ask(
            f"Publish {printable(payload, 60) or 'an empty message'} on {printable(topic, 100)}?",
            "Everybody who subscribes gets it, and rules may send it up.",
            lambda: session.client.publish(f"publish {topic}", topic, payload.encode()),
        )

    session.prompt("publish (topic payload): ", accept, f"{name} ")


def _every(branch: Branch) -> tuple[str, str]:
    return (span_or(branch.topic.interval) if branch.topic else ""), MUTED


def _rate(branch: Branch) -> tuple[str, str]:
    found = branch.topic.rate if branch.topic else branch.rate()
    return (UNKNOWN if found is None else brief_rate(found).removesuffix("/s")), "text"


def _course(branch: Branch) -> tuple[str, str]:
    return (sparkline(branch.topic.numbers(), 16) if branch.topic else ""), "plot"


def _history(topic: Topic, now: float) -> list[Line]:
    """Return the last numbers of a topic, the newest first."""
    return [
        line((f"{moment(at, now)}  ", MUTED), f"{value:.7g} {topic.reading.unit}".strip())
        for at, value in reversed(topic.recent)
    ] or [line(("no numbers received", MUTED))]


def _pretty(payload: bytes) -> list[str]:
    try:
        document = json.loads(payload)
    except (ValueError, RecursionError):
        return _text(payload)
    if not isinstance(document, dict | list):
        return _text(payload)
    try:
        return json.dumps(document, indent=2, ensure_ascii=False).splitlines()[:200]
    except RecursionError:
        return _text(payload)


def _text(payload: bytes) -> list[str]:
    return payload[:4_096].decode(errors="replace").splitlines()[:200] or ["(empty)"]


def _hex_line(payload: bytes, at: int) -> Line:
    part = payload[at : at + 16]
    text = "".join(chr(each) if 32 <= each < 127 else "·" for each in part)
    return line((f"{at:04x}  ", MUTED), f"{part.hex(' '):<47}  ", (text, "accent"))
