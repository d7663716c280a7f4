"""Nodes: the bridges, what is wrong with their devices, and the last readings."""

from collections.abc import Sequence
from typing import Any

from tui.line import MUTED, Line, box, line
from tui.queries import Document, Query, number, query, text
from tui.screens import update
from tui.signs import state_cell
from tui.subject import Subject, subject_of_reading
from tui.table import Column, Table
from tui.text import UNKNOWN, age, printable
from tui.view import Action, View, dimmed, trouble

BRIDGES = query("bridges", 2.0, limit=200)
BRIDGE = "why: this is a bridge; tab, and choose one of its readings"
READINGS = query("readings", 3.0, limit=500)


def bridge_of(row: Document) -> str:
    """Return the name of a bridge with its kind."""
    return f"{text(row.get('kind'))} {text(row.get('name'), 80)}"


def troubles(row: Document) -> list[str]:
    """Return what is wrong with a bridge or its devices."""
    found = [text(row.get("error"), 200)] if row.get("error") else []
    troubles = row.get("troubles")
    found += (
        [f"{text(k)}: {text(v)}" for k, v in troubles.items()] if isinstance(troubles, dict) else []
    )
    refused = row.get("refused")
    for each in refused if isinstance(refused, list) else []:
        if isinstance(each, dict):
            found.append(f"refused {text(each.get('count'))}: {text(each.get('example'), 160)}")
    return found


class Nodes(View):
    """Bridges above, the readings of the one at the cursor below."""

    title = "Nodes"
    about = "bridges, their devices, the last readings; flash and update of nodes at this machine"
    panes = True

    def __init__(self, session: Any) -> None:
        super().__init__(session)
        columns = [
            Column[Document]("BRIDGE", 0, bridge_of, bridge_of),
            Column[Document](
                "STATE",
                10,
                lambda row: state_cell(text(row.get("state"))),
                lambda row: text(row.get("state")),
            ),
            Column[Document](
                "HEARD",
                6,
                lambda row: (age(number(row.get("age"))), MUTED),
                lambda row: number(row.get("age")),
                right=True,
            ),
            Column[Document]("PLACE", 24, lambda row: (text(row.get("place")), MUTED), least=70),
            Column[Document](
                "TROUBLE", 30, lambda row: ("; ".join(troubles(row)), "warn"), least=100
            ),
        ]
        self.table: Table[Document] = Table(columns, bridge_of, empty="no bridges are configured")
        self.below: Table[Document] = readings_table()
        self._updates: dict[str, update.Command] = {}
        self.focus(self.table)

    def queries(self) -> list[Query]:
        """Return the queries for bridges and readings."""
        return [BRIDGES, READINGS]

    def actions(self) -> Sequence[Action]:
        """Return what can be done here."""
        found = [Action("enter", "readings", self._enter, "⏎")]
        row = self.table.current
        if row is not None and row.get("kind") == "serial" and self.session.client.is_local:
            port = str(row.get("place") or "")
            if update.is_here(port):
                found.append(Action("u", "update node", lambda: self._update(port), prompts=True))
        if self.session.client.is_local:
            found.append(Action("F", "flash a new board", self._flash, prompts=True))
        return found

    def subject(self) -> Subject | str | None:
        """Return the topic of the reading at the cursor."""
        if self.below is not None and self.below is self.focused:
            row = self.below.current
            return None if row is None else subject_of_reading(row)
        return None if self.table is None or self.table.current is None else BRIDGE

    def draw(self, cells: int, height: int) -> list[Line]:
        """Return bridges and readings."""
        now = self.session.now
        answer, old = self.answer(BRIDGES), self.old(BRIDGES, now)
        if answer.at is None:
            return box("bridges", trouble(old, cells - 4, height - 2), cells, height)
        rows = answer.rows()
        self.table.fill(rows)
        above = height if self.zoomed or height < 10 else min(height - 6, max(4, len(rows) + 3))
        lines = dimmed(self.table.draw(cells - 4, above - 2), old)
        style = self.frame_of(self.table)
        result = box(f"bridges {len(rows)}", lines, cells, above, old, style)
        if height > above:
            self.below.top = above + 1
            result += self._below(cells, height - above, now)
        return result

    def _below(self, cells: int, height: int, now: float) -> list[Line]:
        row = self.table.current
        if row is None:
            return box("readings", [], cells, height)
        lines = [line((f"! {each}", "warn")) for each in troubles(row)][: max(0, height - 5)]
        counted = row.get("counted")
        if isinstance(counted, dict) and counted and height > 8:
            words = " · ".join(f"{text(k)} {v:,}" for k, v in counted.items() if isinstance(v, int))
            lines.append(line((words, MUTED)))
        self.below.top += len(lines)
        old = self.old(READINGS, now)
        self.below.fill(self._readings(row))
        lines += dimmed(self.below.draw(cells - 4, height - 2 - len(lines)), old)
        title, style = f"readings of {bridge_of(row)}", self.frame_of(self.below)
        return box(title, lines, cells, height, old, style)

    def _update(self, port: str) -> None:
        """Ask, and put this version's node onto the board; show one that runs."""
        running = self._updates.get(port)
        if running is not None and running.status is None:
            self.session.open(update.NodeUpdate(self.session, port, running))
            return
        self.session.ask(
            f"Update the node at {printable(port, 80)}?",
            "Its readings pause for about a minute. A version that does not prove itself goes.",
            lambda: self._begin_update(port),
        )

    def _begin_update(self, port: str) -> None:
        options, _ = self.session.client.options()
        self._begin(port, [[*update.update_command(port), *options]], "")

    def _begin(self, port: str, commands: list[list[str]], then: str) -> None:
        _, environment = self.session.client.options()
        command = self._updates[port] = update.Command(*commands, environment=environment)
        self.session.open(update.NodeUpdate(self.session, port, command, then))

    def _flash(self) -> None:
        """Have the person choose a port of this machine, and put a node onto the board there."""
        places = {
            str(row.get("place")): f"{bridge_of(row)} reads from it"
            for row in self.answer(BRIDGES).rows()
            if row.get("kind") == "serial"
        }
        update.FirstFlash(self.session, self._begin).ask_port(places)

    def _readings(self, row: Document) -> list[Document]:
        return [
            each
            for each in self.answer(READINGS).rows()
            if each.get("kind") == row.get("kind") and each.get("name") == row.get("name")
        ]

    def _enter(self) -> None:
        if self.table.current is not None:
            self.session.open(BridgeReadings(self.session, self.table.current))


class BridgeReadings(View):
    """The last readings of one bridge in a table."""

    title = "readings"

    def __init__(self, session: Any, row: Document) -> None:
        super().__init__(session)
        self._name = bridge_of(row)
        self._query = query("readings", 2.0, kind=row.get("kind"), name=row.get("name"), limit=500)
        self.table: Table[Document] = readings_table()

    def name(self) -> str:
        """Return the bridge's name."""
        return self._name

    def queries(self) -> list[Query]:
        """Return the query for its readings."""
        return [self._query]

    def subject(self) -> Subject | None:
        """Return the topic of the reading at the cursor."""
        row = self.table.current if self.table is not None else None
        return None if row is None else subject_of_reading(row)

    def draw(self, cells: int, height: int) -> list[Line]:
        """Return the table."""
        now = self.session.now
        answer, old = self.answer(self._query), self.old(self._query, now)
        self.table.fill(answer.rows())
        lines = dimmed(self.table.draw(cells - 4, height - 2), old)
        return box(f"readings of {self._name}", lines, cells, height, old)


def readings_table() -> Table[Document]:
    """Return a table of the readings of a bridge."""

    def age_of(row: Document) -> float | None:
        return number(row.get("age"))

    columns = [
        Column[Document](
            "NODE", 0, lambda row: text(row.get("node")), lambda row: text(row.get("node"))
        ),
        Column[Document]("QUANTITY", 20, _quantity, _quantity),
        Column[Document]("VALUE", 16, _value, lambda row: number(row.get("value")), right=True),
        Column[Document]("AGE", 5, lambda row: (age(age_of(row)), MUTED), age_of, right=True),
        Column[Document]("QUALITY", 16, lambda row: (text(row.get("quality")), "warn"), least=70),
    ]
    return Table(
        columns,
        lambda row: f"{row.get('node')}/{row.get('quantity')}/{row.get('instance')}",
        0,
        empty="no reading yet",
    )


def _quantity(row: Document) -> str:
    instance = text(row.get("instance"))
    return text(row.get("quantity")) + (f"/{instance}" if instance else "")


def _value(row: Document) -> str:
    value = row.get("value")
    words = f"{value:.7g}" if isinstance(value, float) else text(value, 40)
    return f"{words} {text(row.get('unit'), 12)}".strip() or UNKNOWN
