"""Clients: who is connected, offline or in trouble; disconnect, drop."""

from collections.abc import Sequence
from typing import Any

from tui.line import MUTED, Line, box, line
from tui.queries import Document, Query, number, query, text
from tui.signs import state_cell
from tui.subject import Subject
from tui.table import Column, Table, figure, rate_of, whole
from tui.text import UNKNOWN, moment, printable, size, span
from tui.view import Action, View, dimmed, trouble

PAGE = 100


def identifier(row: Document) -> str:
    """Return the client identifier, printable."""
    return text(row.get("id"), 120)


def state_of(row: Document) -> str:
    """Return `up` or `offline`."""
    return "up" if row.get("connected") else "offline"


class Clients(View):
    """Pages of the query `clients`, sorted by the gateway."""

    title = "Clients"
    about = "who is connected, offline or in trouble; disconnect and drop"
    marks = True

    def __init__(self, session: Any) -> None:
        super().__init__(session)
        self.table: Table[Document] = Table(
            self._columns(), lambda row: str(row.get("id")), 0, empty="no clients"
        )
        self._offset = 0

    def _columns(self) -> Sequence[Column[Document]]:
        return [
            Column("CLIENT", 0, self._client, identifier),
            Column("STATE", 9, self._state, state_of),
            Column(
                "USER",
                12,
                lambda row: text(row.get("user"), 40) or UNKNOWN,
                lambda row: text(row.get("user")),
                least=100,
            ),
            Column("V", 5, lambda row: (text(row.get("version")), MUTED), least=90),
            Column("ADDRESS", 21, lambda row: (text(row.get("address")), MUTED), least=130),
            figure("IN/S", 6, "received_rate", rate_of),
            figure("OUT/S", 6, "sent_rate", rate_of, least=50),
            Column(
                "FLIGHT",
                9,
                self._flight,
                lambda row: number(row.get("inflight")),
                right=True,
                least=70,
            ),
            figure("WAITING", 9, "waiting", whole, least=56),
            Column("SINCE", 7, self._since, self._seconds, right=True, least=64),
        ]

    def _query(self) -> Query:
        names = (
            "id",
            None,
            None,
            None,
            None,
            "received_rate",
            "sent_rate",
            "inflight",
            "waiting",
            "since",
        )
        sort = names[self.table.sort] if self.table.sort is not None else None
        words = self.table.filter.split()
        match = f"*{words[0]}*" if len(words) == 1 and words[0][0] not in "!~" else None
        return query(
            "clients",
            3.0,
            sort=sort or "id",
            seconds=1,
            limit=PAGE,
            offset=self._offset,
            match=match,
        )

    def queries(self) -> list[Query]:
        """Return the query for the page in view."""
        return [self._query()]

    def actions(self) -> Sequence[Action]:
        """Return what can be done with the client at the cursor, or those that are marked."""
        chosen = self.table.chosen()
        return [
            Action("enter", "open", self._enter, "⏎"),
            Action("K", "disconnect", lambda: disconnect(self.session, *chosen), prompts=True),
            Action("D", "drop session", lambda: drop(self.session, *chosen), prompts=True),
            *self._turns(),
        ]

    def subject(self) -> Subject | None:
        """Return the client at the cursor."""
        row = self.table.current
        return None if row is None else Subject("client", str(row.get("id")))

    def draw(self, cells: int, height: int) -> list[Line]:
        """Return the table."""
        now = self.session.now
        wanted = self._query()
        answer, old = self.answer(wanted), self.old(wanted, now)
        if answer.at is None:
            if old == "asking…" and self.table.rows:
                old = ""  # the next page is on its way: this one stays until then
            else:
                return box("clients", trouble(old, cells - 4, height - 2), cells, height)
        else:
            words = self.table.filter
            if dict(wanted.request).get("match"):
                self.table.filter = ""  # the gateway has filtered
            self.table.fill(answer.rows())
            self.table.filter = words
        total = answer.number("total") or 0
        words = f"clients {total:,.0f}"
        if answer.number("connected") is not None:  # of when the rows were listed
            connected, offline = (whole(answer.document, each) for each in ("connected", "offline"))
            words = f"{connected} connected · {offline} offline"
        if total > PAGE:
            last = min(self._offset + PAGE, int(total))
            words += f" · {self._offset + 1:,} to {last:,} of {total:,.0f}"
        lines = dimmed(self.table.draw(cells - 4, height - 2), old)
        return box(words, lines, cells, height, old or f"sort: {self.table.sorted_by()}")

    def _turns(self) -> list[Action]:
        found = []
        if (self.answer(self._query()).number("total") or 0) > self._offset + PAGE:
            found.append(Action("n", "next page", lambda: self._turn(PAGE)))
        if self._offset:
            found.append(Action("b", "previous page", lambda: self._turn(-PAGE)))
        return found

    def _turn(self, by: int) -> None:
        total = int(self.answer(self._query()).number("total") or 0)
        if 0 <= self._offset + by < max(1, total):
            self._offset += by
            self.table.move(-len(self.table.rows))

    def _client(self, row: Document) -> tuple[str, str]:
        if row.get("id") == self.session.client.client_id:
            return identifier(row), "muted"
        if row.get("shared_identifier"):
            return "! " + identifier(row), "warn"
        return identifier(row), "text"

    def _state(self, row: Document) -> tuple[str, str]:
        if row.get("id") == self.session.client.client_id:
            return "● you", "good"
        return ("! shared", "warn") if row.get("shared_identifier") else state_cell(state_of(row))

    def _flight(self, row: Document) -> str:
        return f"{whole(row, 'inflight')}/{whole(row, 'window')}"

    def _seconds(self, row: Document) -> float | None:
        began = number(row.get("since")) or number(row.get("disconnected"))
        return None if began is None else self.session.there - began / 1_000

    def _since(self, row: Document) -> tuple[str, str]:
        return span(self._seconds(row)).replace(" ", ""), MUTED

    def _enter(self) -> None:
        if self.table.current is not None:
            self.session.open(ClientDetail(self.session, str(self.table.current.get("id"))))


class ClientDetail(View):
    """One client: its session, subscriptions, what it lost, how its connections ended."""

    title = "client"

    def __init__(self, session: Any, client_id: str) -> None:
        super().__init__(session)
        self._id = client_id
        self._query = query("client", 2.0, id=client_id, seconds=1)

    def name(self) -> str:
        """Return the client identifier."""
        return self._id

    def queries(self) -> list[Query]:
        """Return the query for this client."""
        return [self._query]

    def actions(self) -> Sequence[Action]:
        """Return what can be done with it."""
        row = self.answer(self._query).document.get("client")
        if not isinstance(row, dict):
            row = {"id": self._id}
        return [
            Action("K", "disconnect", lambda: disconnect(self.session, row), prompts=True),
            Action("D", "drop session", lambda: drop(self.session, row), prompts=True),
        ]

    def subject(self) -> Subject:
        """Return this client."""
        return Subject("client", self._id)

    def draw(self, cells: int, height: int) -> list[Line]:
        """Return everything about it."""
        now = self.session.now
        answer, old = self.answer(self._query), self.old(self._query, now)
        title = printable(self._id, 120)
        if answer.at is None:
            return box(title, trouble(old, cells - 4, height - 2), cells, height)
        row = answer.document.get("client")
        lines = (
            self._facts(row, answer.document, now)
            if isinstance(row, dict)
            else [line(("only its last ends are known", MUTED))]
        )
        lines += [[], line(("subscriptions", "head"))]
        lines += [_subscription(each) for each in answer.rows("subscriptions")] or [
            line(("  none", MUTED))
        ]
        lines += [[], line(("how connections ended, the newest first", "head"))]
        lines += [_end(each, now) for each in answer.rows("ends")] or [line(("  none has", MUTED))]
        address = text(row.get("address")) if isinstance(row, dict) else ""
        return box(title, dimmed(lines, old), cells, height, old or address)

    def _facts(self, row: Document, document: Document, now: float) -> list[Line]:
        expiry = number(row.get("expiry"))
        ends = "for ever" if row.get("expiry") is None else f"for {span(expiry)}"
        began, gone = number(row.get("since")), number(row.get("disconnected"))
        here = f"up since {moment(began and began / 1_000, now)}, MQTT {text(row.get('version'))}"
        here += f", by {text(row.get('listener'))}"
        facts = [
            (
                "state",
                here
                if row.get("connected")
                else f"offline since {moment(gone and gone / 1_000, now)}",
            ),
            ("user", text(row.get("user")) or "none"),
            ("session", f"outlives its connection {ends}; class {text(row.get('class'))}"),
            ("traffic", _traffic(row) if row.get("connected") else "none"),
            (
                "waiting",
                _waiting(row, document),
            ),
        ]
        lines = [line((f"{name:<9} ", MUTED), words) for name, words in facts]
        drops = document.get("drops")
        lost = (
            [f"{text(k)} {v:,}" for k, v in drops.items() if isinstance(v, int) and v]
            if isinstance(drops, dict)
            else []
        )
        if lost:
            lines.append(line((f"{'lost':<9} ", MUTED), (", ".join(lost), "warn")))
        if row.get("shared_identifier"):
            lines.insert(0, line(("! two devices probably use this identifier", "warn")))
        return lines


def _traffic(row: Document) -> str:
    rates = f"in {rate_of(row, 'received_rate')}/s, out {rate_of(row, 'sent_rate')}/s"
    silence = span(number(row.get("silent_seconds")))
    return f"{rates}; silent {silence}, keep alive {whole(row, 'keep_alive')} s"


def _waiting(row: Document, document: Document) -> str:
    octets = size(int(number(row.get("waiting_bytes")) or 0))
    oldest = span(number(document.get("oldest_seconds")))
    flight = f"in flight {whole(row, 'inflight')} of {whole(row, 'window')}"
    return f"{whole(row, 'waiting')} messages, {octets}, oldest {oldest}; {flight}"


def _subscription(row: Document) -> Line:
    shown = line(f"  {text(row.get('filter'), 120)}", (f"  QoS {text(row.get('qos'))}", MUTED))
    if row.get("where"):
        evaluated, passed = number(row.get("evaluated")), number(row.get("passed"))
        shown.append((f"  $where {text(row.get('where'), 200)}", "accent"))
        if evaluated:
            shown.append((f"  {passed or 0:,.0f} of {evaluated:,.0f} pass", MUTED))
    return shown


def _end(row: Document, now: float) -> Line:
    at = number(row.get("time"))
    return line(
        (f"  {moment(at and at / 1_000, now)}  ", MUTED),
        text(row.get("reason"), 160),
        (f"  after {span(number(row.get('seconds')))}  {text(row.get('address'))}", MUTED),
    )


def disconnect(session: Any, *rows: Document) -> None:
    """Ask, and end the connections of clients."""
    if rows:
        session.ask(
            f"Disconnect {_named(rows)}?",
            "Their sessions stay. Most clients connect again at once.",
            lambda: _order(session, "client/disconnect", rows, "disconnected"),
        )


def drop(session: Any, *rows: Document) -> None:
    """Ask, and end the sessions of clients."""
    waiting = sum(int(number(row.get("waiting")) or 0) for row in rows)
    whose = "its" if len(rows) == 1 else "their"
    if rows:
        session.ask(
            f"Drop the session of {_named(rows)}?",
            f"{waiting:,} waiting messages and {whose} subscriptions are gone for ever.",
            lambda: _order(session, "session/drop", rows, "dropped the session of"),
        )


def _named(rows: Sequence[Document]) -> str:
    return printable(str(rows[0].get("id")), 100) if len(rows) == 1 else f"{len(rows)} clients"


def _order(session: Any, what: str, rows: Sequence[Document], words: str) -> None:
    for row in rows:
        name = str(row.get("id"))
        session.do(query(what, 0.0, id=name), f"{words} {name}")
