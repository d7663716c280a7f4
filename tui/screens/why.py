"""Where messages of a topic, client, queue or rule went, or what they wait for, and why."""

from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

from tui.figures import uplink_prefix
from tui.line import MUTED, Line, box
from tui.queries import EVENTS, STATUS, Document, Query, number, query, text
from tui.screens.queues import QUEUES, RULES, key, queue_rows
from tui.screens.rule import place_of
from tui.subject import OTHERS, Subject
from tui.table import Column, Table, rate_of, whole
from tui.text import moment, outage, printable, size, span, wrapped
from tui.view import View, dimmed

LABEL = 10
"""cells of what a line is about"""
MOST = 400
"""characters of a line"""
SUBJECT = 200
"""characters of an event's subject: the gateway cuts a longer identifier"""
DENIED = query("events", 5.0, kind="denied", limit=100)
LOST = {
    "oldest": "dropped, the oldest first: the queue was full",
    "newest": "dropped when they arrived: the queue was full",
    "for_others": "dropped to free space for other queues",
    "rejected": "not taken: the queue was full",
    "rejected_for_memory": "not taken: the gateway had no memory for them",
    "disconnected": "at QoS 0, which waits for no later connection",
    "expired": "expired while they waited",
}
"""what a session's causes of lost messages mean"""
LINK = {
    "connected": "the link is up",
    "connecting": "the link is being made",
    "disconnected": "the link is down; the gateway tries again by itself",
    "waiting": "the link waits until it may be up",
    "paused": "an operator has paused it, which stays over restarts; p in Queues resumes it",
    "off": "the link is off",
}
"""what the states of an uplink mean"""


class Row(NamedTuple):
    """A line of the answer: what it is about, what is so, and its style."""

    label: str
    words: str
    style: str = "text"


class Why(View):
    """The lines of an answer, which can be moved through."""

    title = "why"
    question: ClassVar[str] = ""
    """what the title says after the name"""

    def __init__(self, session: Any, name: str) -> None:
        super().__init__(session)
        self.subject_name = name
        columns = [
            Column[tuple[int, Row]]("", LABEL, lambda row: (row[1].label, MUTED)),
            Column[tuple[int, Row]]("", 0, lambda row: (row[1].words, row[1].style)),
        ]
        self.table: Table[tuple[int, Row]] = Table(columns, lambda row: str(row[0]))

    def answer_rows(self) -> Iterator[Row]:
        """Yield the answer."""
        raise NotImplementedError

    def copied(self) -> str:
        """Return the line at the cursor."""
        row = self.table.current
        return self.subject_name if row is None else row[1].words

    def draw(self, cells: int, height: int) -> list[Line]:
        """Return the answer, wrapped."""
        now, main = self.session.now, self.queries()[0]
        width = max(4, cells - 4 - LABEL - 4)
        rows = []
        for label, words, style in self.answer_rows():
            parts = wrapped(printable(words, MOST), width)
            rows += [Row("" if n else label, each, style) for n, each in enumerate(parts)]
        self.table.fill(list(enumerate(rows)))
        old = self.old(main, now) if self.answer(main).at is not None else ""
        lines = dimmed(self.table.draw(cells - 4, height - 2), old)
        title = f"{printable(self.subject_name, 120)}: {self.question}"
        return box(title, lines, cells, height, old or "escape: back")

    def missing(self, wanted: Query) -> Iterator[Row]:
        """Yield why a query has no answer, if it has none."""
        answer = self.answer(wanted)
        if answer.at is None:
            yield Row("", answer.error or "asking…", "warn")


class WhyTopic(Why):
    """Who gets a topic, and what the query `why` says of its last message."""

    question = "where it went, and why"

    def __init__(self, session: Any, name: str) -> None:
        super().__init__(session, name)
        self._why = query("why", 0.0, topic=name)
        self._lookup = query("topic", 5.0, topic=name)

    def queries(self) -> list[Query]:
        """Return the query for who gets such messages, and for the last one."""
        return [self._lookup, self._why]

    def answer_rows(self) -> Iterator[Row]:
        """Yield who gets each message, then the way of the last one."""
        lookup, found = self.answer(self._lookup), False
        yield from self.missing(self._lookup)
        for name, words in (("receivers", "gets each message"), ("filtered", "a filter decides")):
            names = lookup.document.get(name)
            for each in names if isinstance(names, list) else []:
                found = True
                yield Row("to", f"{printable(str(each), 120)}: {words}")
        if lookup.at is not None and not found:
            yield Row("to", "no client receives it", "warn")
        yield from self.missing(self._why)
        lines = self.answer(self._why).document.get("lines")
        for each in lines if isinstance(lines, list) else []:
            words = str(each)
            yield Row("", words, "text" if words.startswith(" ") else "head")


class WhyClient(Why):
    """What a client gets, what waits for it, what it lost, what it has no right to."""

    question = "what it gets, and why not more"

    def __init__(self, session: Any, name: str) -> None:
        super().__init__(session, name)
        self._query = query("client", 2.0, id=name, seconds=1)

    def queries(self) -> list[Query]:
        """Return the query for the client, and for rights that clients lacked."""
        return [self._query, DENIED]

    def answer_rows(self) -> Iterator[Row]:
        """Yield the answer."""
        now = self.session.now
        yield from self.missing(self._query)
        answer = self.answer(self._query)
        row = answer.document.get("client")
        if isinstance(row, dict):
            yield from self._state(row, now)
            yield from self._waits(row, answer.document)
        elif answer.at is not None:
            yield Row("state", "it has no session: nothing is sent to it or waits for it", "warn")
        yield from self._rights(now)
        yield from self._ends(answer.rows("ends"), now)
        if isinstance(row, dict):  # at the end, since there may be many
            yield from self._gets(row, answer.rows("subscriptions"))

    def _state(self, row: Document, now: float) -> Iterator[Row]:
        since, gone, expiry = (_number(row, each) for each in ("since", "disconnected", "expiry"))
        if row.get("connected"):
            yield Row("state", f"connected since {moment(since and since / 1_000, now)}", "good")
            return
        words = f"offline since {moment(gone and gone / 1_000, now)}: nothing is sent to it"
        yield Row("state", f"{words}, and QoS 0 does not wait", "warn")
        if row.get("expiry") is None:
            yield Row("until", "it connects again: its session never expires")
        elif gone is not None and expiry is not None:
            end = moment(gone / 1_000 + expiry, now)
            yield Row("until", f"it connects again, or its session ends at {end}")

    def _gets(self, row: Document, subscriptions: list[Document]) -> Iterator[Row]:
        for each in subscriptions:
            words = f"{text(each.get('filter'), 120)} at QoS {text(each.get('qos'))}"
            if every := _number(each, "every_ms"):
                words += f", of each topic one in {every / 1_000:g} s"
            if each.get("no_local"):
                words += ", not what it publishes itself"
            yield Row("gets", words)
            if each.get("where"):
                yield Row("", f"  where {text(each.get('where'), 240)}: {_passed(each)}", "accent")
        more = int(_number(row, "subscriptions") or 0) - len(subscriptions)
        if more > 0:
            yield Row("gets", f"by {more:,} more subscriptions")
        elif not subscriptions:
            yield Row("gets", "nothing: it has no subscription", "warn")

    def _waits(self, row: Document, document: Document) -> Iterator[Row]:
        waiting, oldest = _number(row, "waiting"), _number(document, "oldest_seconds")
        words = f"{whole(row, 'waiting')} messages, {size(int(_number(row, 'waiting_bytes') or 0))}"
        yield Row("waits", "nothing" if waiting == 0 else f"{words}, oldest {span(oldest)}")
        inflight, window = _number(row, "inflight"), _number(row, "window")
        if inflight:
            words = f"{inflight:,.0f} messages wait for its acknowledgement"
            full = window is not None and inflight >= window
            words += f": its window of {window:,.0f} is full, no more is sent" if full else ""
            yield Row("sent", words, "warn" if full else "text")
        if held := _number(document, "held_back"):
            words = f"{held:,.0f} messages that it may not read now; they wait until it may"
            yield Row("held back", words, "warn")
        drops = document.get("drops")
        if isinstance(drops, dict):
            lost = [(str(k), v) for k, each in drops.items() if (v := number(each))]
            for cause, many in lost:
                words = f"{many:,.0f} {LOST.get(cause, printable(cause, 80))}"
                yield Row("lost", words, "warn")
            if not lost:
                yield Row("lost", "nothing since the gateway's start")
        if row.get("shared_identifier"):
            yield Row("", "two devices probably use this identifier: each ends the other", "warn")

    def _rights(self, now: float) -> Iterator[Row]:
        denied, own = self.answer(DENIED), self.subject_name[:SUBJECT]
        if denied.at is None:
            yield Row("may not", denied.error or "asking…", MUTED)
            return
        found = [each for each in denied.rows() if each.get("subject") == own]
        for each in found:
            yield Row("may not", f"{text(each.get('text'), 240)}{_times(each, now)}", "warn")
        if not found:
            words = "no refusal for want of a right is among the last events"
            if any(each.get("subject") == OTHERS for each in denied.rows()):
                words += " of single clients; some are counted together"
            yield Row("may not", words, MUTED)

    def _ends(self, ends: list[Document], now: float) -> Iterator[Row]:
        for each in ends:
            at = _number(each, "time")
            lasted = span(_number(each, "seconds"))
            words = f"{moment(at and at / 1_000, now)} {text(each.get('reason'), 200)}"
            yield Row("ended", f"{words}, after {lasted} at {text(each.get('address'))}")
        for each in self.answer(EVENTS).rows():
            if each.get("kind") == "refused" and each.get("subject") == self.subject_name[:SUBJECT]:
                yield Row("refused", f"{text(each.get('text'), 240)}{_times(each, now)}", "warn")


class WhyQueue(Why):
    """Why messages of an uplink, a channel or delayed ones wait, and until when."""

    question = "why it waits, and until when"

    def __init__(self, session: Any, name: str) -> None:
        super().__init__(session, name)
        self._kind, _, self._own = name.partition(" ")

    def queries(self) -> list[Query]:
        """Return the query for queues."""
        return [QUEUES, STATUS]

    def every_figure(self) -> bool:
        """Return whether it needs a channel's figures."""
        return self._kind == "channel"

    def answer_rows(self) -> Iterator[Row]:
        """Yield the answer."""
        now = self.session.now
        yield from self.missing(QUEUES)
        answer = self.answer(QUEUES)
        rows = queue_rows(self.session)
        row = next((each for each in rows if key(each) == self.subject_name), {})
        if answer.at is not None and not row:
            yield Row("state", "there is no such queue now", "warn")
        if self._kind == "uplink":
            yield from self._link(row, now)
        elif self._kind == "channel":
            yield from self._channel(row)
        elif self._kind == "delayed":
            yield Row("state", "each message waits for the second that its publisher has named")
        if row:
            yield from self._depth(row)
        if row and self._kind == "uplink":
            yield from self._capacity(row)

    def _link(self, row: Document, now: float) -> Iterator[Row]:
        state = text(row.get("state"))
        style = "good" if state == "connected" else "warn"
        meant = LINK.get(state, "")
        if state or row:
            yield Row("state", f"{state}: {meant}" if meant else state or "not known", style)
        if error := text(row.get("error"), 240):
            yield Row("because", error, "bad" if state == "disconnected" else "warn")
        if (attempt := number(row.get("attempt"))) is not None:
            yield Row("next try", f"in {span(attempt)}")
        subject = f"uplink {self._own}".strip()
        for each in self.answer(EVENTS).rows():
            lasts = each.get("kind") == "link" and each.get("until") is None
            if lasts and each.get("subject") == subject and state not in ("", "connected"):
                at = _number(each, "time")
                yield Row("since", moment(at and at / 1_000, now))
        figures, begin = self.session.state.figures, uplink_prefix(self._own)
        budget, used = (figures.count(begin + each) for each in ("budget", "budget_used"))
        if budget:
            words = f"{size(used)} of {size(budget)} of today are used"
            yield Row("budget", words, "warn" if (used or 0) >= budget else "text")

    def _channel(self, row: Document) -> Iterator[Row]:
        figures, begin = self.session.state.figures, f"tidegate/channels/{self._own}/"
        state, consumers = text(row.get("state")), figures.count(f"{begin}consumers")
        if state == "paused":
            yield Row("state", "paused: an operator has paused it; p in Queues resumes it", "warn")
        elif state:
            yield Row("state", state, "good")
        if consumers is not None:
            words = f"{consumers:,} are subscribed"
            none = "none is subscribed: messages wait for one"
            style = "text" if consumers else "warn"
            yield Row("consumers", words if consumers else none, style)
        if aside := figures.count(f"{begin}put_aside"):
            words = f"{aside:,} are paused, or no consumer may read them"
            yield Row("aside", words, "warn")
        if row.get("filter"):
            yield Row("filter", text(row.get("filter"), 120))

    def _depth(self, row: Document) -> Iterator[Row]:
        octets = number(row.get("bytes"))
        words = f"{whole(row, 'depth')} messages" + (f", {size(int(octets))}" if octets else "")
        yield Row("waits", "nothing" if row.get("depth") == 0 else words)
        if row.get("inflight"):
            yield Row("sent", f"{whole(row, 'inflight')} are sent and not acknowledged")
        if (oldest := number(row.get("oldest_seconds"))) is not None:
            yield Row("oldest", f"waits for {span(oldest)}")
        if row.get("in_rate") is not None:
            rates = f"{rate_of(row, 'in_rate')}/s come, {rate_of(row, 'out_rate')}/s go"
            yield Row("rates", rates)
        if (seconds := number(row.get("empty_seconds"))) is not None:
            yield Row("empty in", f"{span(seconds)} at these rates", "good")

    def _capacity(self, row: Document) -> Iterator[Row]:
        survives = self.session.state.survives(self.answer(STATUS).document)
        if survives is not None and row.get("state") != "connected":
            words = f"for {outage(survives)}, then the outbox is full"
            yield Row("capacity", words if survives else "the outbox is full")


class WhyRule(Why):
    """What a rule passed and filtered, and what rules before it pass first."""

    question = "what it passed, and why not more"

    def queries(self) -> list[Query]:
        """Return the query for rules."""
        return [RULES]

    def answer_rows(self) -> Iterator[Row]:
        """Yield the answer."""
        yield from self.missing(RULES)
        answer = self.answer(RULES)
        rows = answer.rows()
        places = [place_of(each) for each in rows]
        if self.subject_name in places:
            at = places.index(self.subject_name)
            yield from self._rule(rows[at])
            yield from self._before(rows[at], rows[:at])
        elif answer.at is not None:
            yield Row("state", "there is no such rule now: an edit gives it a new name", "warn")

    def _rule(self, rule: Document) -> Iterator[Row]:
        yield Row("topic", text(rule.get("topic"), 240), "head")
        yield Row("where", text(rule.get("where"), 300) or "none: every message passes", "head")
        names = ", ".join(each or "the uplink" for each in _uplinks(rule))
        yield Row(
            "to", f"{names}, stream {text(rule.get('stream'))}, lane {text(rule.get('lane'))}"
        )
        yield Row("seen", f"{_counted(rule, 'evaluated')} messages reached it")
        yield Row("passed", f"{_counted(rule, 'passed')} of these", "good")
        nulls = _counted(rule, "null")
        words = f"{_counted(rule, 'filtered')}: its where was not TRUE"
        yield Row("filtered", words + (f"; of these {nulls} NULL" if nulls not in "0—" else ""))
        for name, meaning in (
            ("over_budget", "of the NULL: its where needed more work than a message may cost"),
            ("state_overflow", "for which its memory had no space"),
        ):
            if (found := _counted(rule, name)) not in "0—":
                yield Row("", f"{found} {meaning}", "warn")

    def _before(self, rule: Document, earlier: list[Document]) -> Iterator[Row]:
        own, none = _uplinks(rule), True
        for each in earlier:
            shared = [name for name in _uplinks(each) if name in own]
            if shared and each.get("stream") == rule.get("stream"):
                none = False
                where = f" where {text(each.get('where'), 160)}" if each.get("where") else ""
                words = f"{text(each.get('topic'), 120)}{where} passed {_counted(each, 'passed')}"
                what = f"{words}: this rule does not get these messages"
                whole_way = len(shared) == len(own)
                to = "" if whole_way else " to " + ", ".join(shared)
                yield Row("before it", what + to)
        if none:
            yield Row("before it", "no rule of its stream for these uplinks")


KINDS: dict[str, type[Why]] = {
    "topic": WhyTopic,
    "client": WhyClient,
    "queue": WhyQueue,
    "rule": WhyRule,
}


def why_of(session: Any, subject: Subject) -> Why:
    """Return the view that explains a topic, client, queue or rule."""
    return KINDS[subject.kind](session, subject.name)


def _number(row: Document, name: str) -> float | None:
    return number(row.get(name))


def _times(row: Document, now: float) -> str:
    """Return how often an event was, and when last."""
    at = number(row.get("until")) or number(row.get("time"))
    many = number(row.get("count")) or 1
    return f" ({many:,.0f} times, last {moment(at and at / 1_000, now)})"


def _passed(row: Document) -> str:
    seen, passed = number(row.get("evaluated")), number(row.get("passed"))
    return f"{passed or 0:,.0f} of {seen:,.0f} passed" if seen else "none was evaluated yet"


def _counted(rule: Document, name: str) -> str:
    counters = rule.get("counters")
    return whole(counters, name) if isinstance(counters, dict) else "—"


def _uplinks(rule: Document) -> list[str]:
    found = rule.get("uplinks")
    return [text(each, 80) for each in found] if isinstance(found, list) else []
