"""The memory of uplink rules, stored across restarts (where-language, section 13)."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gateway.storage.engine.connection import Row
from gateway.storage.engine.database import Database
from gateway.storage.engine.writer import Writer
from gateway.where.language.conversions import Value

LAYOUT = 1
"""The order of an expression's values in a row; rows with another layout are ignored."""

_EPOCHS = "rule_epochs"
"""The name in `meta` of the last rule epoch."""

_RULES = "SELECT stream, topic, expression, repeat, layout, complete, epoch FROM rules"
_MEMORY = "SELECT topic, remembered FROM rule_memory WHERE epoch = ?"
_LAST_EPOCH = "SELECT coalesce(max(value), 0) FROM meta WHERE name = ?"
_SET_EPOCH = (
    "INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value"
)
_INSERT = (
    "INSERT INTO rules (epoch, stream, topic, expression, repeat, layout, complete)"
    " VALUES (?, ?, ?, ?, ?, ?, 1)"
)
_DELETE = "DELETE FROM rules WHERE epoch = ?"
_FORGET_ALL = "DELETE FROM rule_memory WHERE epoch = ?"
_SAVE = (
    "INSERT INTO rule_memory (epoch, topic, remembered) VALUES (?, ?, ?)"
    " ON CONFLICT DO UPDATE SET remembered = excluded.remembered"
)
_FORGET = "DELETE FROM rule_memory WHERE epoch = ? AND topic = ?"
_COMPLETE = "UPDATE rules SET complete = ? WHERE epoch = ?"


@dataclass(frozen=True, slots=True)
class RuleKey:
    """What identifies a rule after a restart; `repeat` counts equal ones from 0."""

    stream: str
    topic: str
    expression: str
    repeat: int = 0


class RuleState:
    """The rows of one rule on disk, as far as they are `complete`.

    `epoch` is the rule epoch: a number that is higher whenever the state starts empty. `rows` are
    from an earlier run, by topic. A state that is not `complete` lacks values that are only in
    memory; after a crash it is useless, and starts empty.
    """

    def __init__(self, epoch: int, rows: dict[str, list[Value]], writer: Writer) -> None:
        self.epoch = epoch
        self.rows = rows
        self.complete = True
        self._writer = writer

    def save(
        self, topic: str, row: Sequence[Value] | None, commit_within: float | None = 0.0
    ) -> None:
        """Write the present row of `topic`, None if it was removed.

        `commit_within` is as in `Writer.add`.
        """
        if row is None:
            self._writer.add(_FORGET, (self.epoch, topic), commit_within)
            return
        text = json.dumps(row, ensure_ascii=False, separators=(",", ":"))
        self._writer.add(_SAVE, (self.epoch, topic, text), commit_within)

    def set_complete(self, *, complete: bool, commit_within: float | None = 0.0) -> None:
        """Write whether all values are on disk, if that has changed."""
        if complete is not self.complete:
            self.complete = complete
            self._writer.add(_COMPLETE, (int(complete), self.epoch), commit_within)


class RuleStates:
    """Finds the state of each rule again, or gives it an empty one with a new rule epoch."""

    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer

    async def restore(self, keys: Sequence[RuleKey]) -> dict[RuleKey, RuleState]:
        """Return the states of these rules; states of no rule are deleted.

        Call it once, before anything is saved. Raises StartError if the disk does not accept the
        new epochs.
        """
        found = await self._rows(_RULES, ())
        known = {
            RuleKey(*row[:4]): row[6]
            for row in found
            if row[4] == LAYOUT and row[5] and RuleKey(*row[:4]) in keys
        }
        last = (await self._rows(_LAST_EPOCH, (_EPOCHS,)))[0][0]
        new = [key for key in keys if key not in known]
        epochs = known | {key: last + index for index, key in enumerate(new, 1)}
        gone: list[Row] = [(row[6],) for row in found if row[6] not in epochs.values()]
        if new or gone:
            await self._replace(gone, {epochs[key]: key for key in new}, last)
        return {key: await self._state(epochs[key]) for key in keys}

    async def begin(self, keys: Sequence[RuleKey]) -> dict[RuleKey, RuleState]:
        """Return empty states of rules that are added while others run."""
        last = (await self._rows(_LAST_EPOCH, (_EPOCHS,)))[0][0]
        new = {last + index: key for index, key in enumerate(keys, 1)}
        if new:
            await self._replace([], new, last)
        return {key: RuleState(epoch, {}, self._writer) for epoch, key in new.items()}

    def forget(self, state: RuleState) -> None:
        """Delete the state of a removed rule."""
        for statement in (_DELETE, _FORGET_ALL):
            self._writer.add(statement, (state.epoch,))

    async def _replace(self, gone: list[Row], new: dict[int, RuleKey], last_epoch: int) -> None:
        rows: list[Row] = [
            (epoch, key.stream, key.topic, key.expression, key.repeat, LAYOUT)
            for epoch, key in new.items()
        ]
        last: Row = (_EPOCHS, max(new, default=last_epoch))
        batch = [(_DELETE, gone), (_FORGET_ALL, gone), (_INSERT, rows), (_SET_EPOCH, [last])]
        for statement, each in batch:
            for row in each:
                self._writer.add(statement, row)
        self._writer.hand_over()

    async def _state(self, epoch: int) -> RuleState:
        rows = await self._rows(_MEMORY, (epoch,))
        remembered = {topic: json.loads(text) for topic, text in rows}
        return RuleState(epoch, remembered, self._writer)

    async def _rows(self, statement: str, row: Row) -> list[Any]:
        query = self._database.writer.query  # sees the last commit, too
        return await query(statement, row, lambda cursor: cursor.fetchall())
