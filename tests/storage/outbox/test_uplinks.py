"""Rows that several uplinks wait for: each reads its own, and a row leaves with the last."""

import sqlite3
from pathlib import Path
from random import Random

import pytest

from gateway.storage.ledger.ledger import Ledger
from gateway.storage.ledger.starts import Starts
from gateway.storage.outbox.row import OutboxRow, Outcome
from gateway.storage.outbox.uplinks import UplinkBits
from tests.support.disk.storage import Store, open_store, outbox_row

NAMES = ("cloud", "plant", "hall")
EPOCH = "00a1b2c3d4"
ENDS = [(Outcome.DELIVERED, ""), (Outcome.DELIVERED, ""), (Outcome.REJECTED, "0x99")]


class _Run:
    """A store with its ledger, beside what is expected of both."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.waiting: dict[int, int] = {}
        self.ended: dict[tuple[int, int], str] = {}
        self.last = 0
        self.store: Store

    async def open(self) -> None:
        self.store = await open_store(self.folder, uplinks=NAMES)
        starts = Starts(
            self.store.database, self.store.writer, self.store.counters, 1, "ffffffffff"
        )
        ledger = Ledger(self.store.database, self.store.writer, self.store.counters, starts, NAMES)
        await ledger.load()
        self.store.outbox.on_outcome.append(ledger.ended)

    def add(self, uplinks: int, expiry: int | None) -> None:
        self.last += 1
        row = outbox_row(self.last, message_expiry=expiry)
        row.uplinks = uplinks
        self.store.outbox.add(row)
        self.waiting[self.last] = uplinks

    async def rows(self, uplink: int) -> list[OutboxRow]:
        return await self.store.outbox.fetch(0, 10_000, uplink=uplink)

    async def end(self, random: Random, uplink: int) -> None:
        """Let an uplink be done with some of its rows."""
        rows = [row for row in await self.rows(uplink) if random.random() < 0.5]
        outcome, reason = random.choice(ENDS)
        self.store.outbox.remove(rows, outcome, reason, uplink=uplink)
        for row in rows:
            self.note(row.seq, uplink, outcome)

    async def expire(self) -> None:
        await self.store.settle()
        await self.store.outbox.sweep(outbox_row(self.last).time + 5_000, 0.0)
        for number, uplinks in list(self.waiting.items()):
            if number % 10 == 0:
                self.note(number, uplinks, Outcome.EXPIRED)

    def note(self, number: int, uplinks: int, outcome: Outcome) -> None:
        for uplink in (1, 2, 4):
            if uplinks & uplink:
                assert (number, uplink) not in self.ended
                self.ended[number, uplink] = outcome.value
        self.waiting[number] &= ~uplinks
        if not self.waiting[number]:
            del self.waiting[number]

    async def check(self) -> None:
        await self.store.settle()
        assert self.store.outbox.rows == len(self.waiting)
        for place, uplink in enumerate((1, 2, 4)):
            expected = [number for number, uplinks in self.waiting.items() if uplinks & uplink]
            assert [row.seq for row in await self.rows(uplink)] == expected
            assert self.store.outbox.uplinks.rows[place] == len(expected)

    async def reported(self) -> dict[tuple[int, int], str]:
        query = "SELECT uplink, first, last, outcome FROM ledger"
        ranges = await self.store.database.reader.query(query, (), sqlite3.Cursor.fetchall)
        return {
            (number, 1 << NAMES.index(uplink)): outcome
            for uplink, first, last, outcome in ranges
            for number in range(first, last + 1)
        }


@pytest.mark.uncovered
@pytest.mark.parametrize("seed", range(4))
async def test_every_uplink_ends_each_of_its_rows_once_over_restarts(
    tmp_path: Path, seed: int
) -> None:
    random, run = Random(seed), _Run(tmp_path)
    await run.open()
    for step in range(40):
        for _ in range(random.randrange(40)):
            run.add(random.randrange(1, 8), 1 if (run.last + 1) % 10 == 0 else None)
        if random.random() < 0.7:
            await run.store.settle()
        await run.end(random, random.choice([1, 1, 1, 2, 4]))
        if step % 7 == 3:
            await run.expire()
        if step % 5 == 4:
            await run.check()
        if step % 11 == 10:
            await run.store.settle()
            await run.store.close()
            await run.open()
    await run.check()
    assert await run.reported() == run.ended
    assert run.store.alarms == []
    await run.store.close()


async def test_what_nobody_is_owed_any_more_goes_to_the_first(tmp_path: Path) -> None:
    for names in (("old", "older"), ("cloud", "plant"), ()):
        store = await open_store(tmp_path, uplinks=names)
        row = outbox_row(store.outbox.rows + 1)
        row.uplinks = 2 if names else 1
        store.outbox.add(row)
        await store.settle()
        first = [row.seq for row in await store.outbox.fetch(0, 10, uplink=1)]
        second = [row.seq for row in await store.outbox.fetch(0, 10, uplink=2)]
        assert (first, second, store.outbox.uplinks.rows) == {
            "old": ([], [1], [0, 1]),
            "cloud": ([1], [2], [1, 1]),
            "": ([1, 2, 3], [], [3]),
        }[store.outbox.uplinks.names[0]]
        await store.close()


def test_one_alone_has_no_name_on_disk() -> None:
    bits = UplinkBits(["cloud"])
    assert (bits.names, bits.text(1), bits.bits(None), bits.condition(1)) == (
        ("",),
        None,
        1,
        ("", ()),
    )


def test_the_first_of_several_has_what_no_other_is_owed() -> None:
    bits = UplinkBits(NAMES)
    assert (bits.every, bits.rows) == (0b111, [0, 0, 0])
    assert bits.condition(1)[1] == (",cloud,", ",plant,", ",hall,")


@pytest.mark.parametrize("seed", range(6))
async def test_uplinks_that_come_and_go_leave_each_row_to_those_that_wait_for_it(
    tmp_path: Path, seed: int
) -> None:
    """Also as the next start reads it from disk, whatever the order and however often."""
    random, names = Random(seed), ["cloud"]
    waiting: dict[int, set[str]] = {}
    store = await open_store(tmp_path, uplinks=names)
    last = 0
    for _ in range(30):
        for _ in range(random.randrange(8)):
            last += 1
            row = outbox_row(last)
            waiting[last] = set(random.sample(names, random.randrange(len(names)) + 1))
            row.uplinks = sum(1 << names.index(each) for each in waiting[last])
            store.outbox.add(row)
        await store.settle()
        place = random.randrange(len(names))
        rows = await store.outbox.fetch(0, 1000, uplink=1 << place)
        ending = [row for row in rows if random.random() < 0.3]
        store.outbox.remove(ending, Outcome.DELIVERED, uplink=1 << place)
        for row in ending:
            waiting[row.seq].discard(names[place])
        waiting = {seq: each for seq, each in waiting.items() if each}
        if random.random() < 0.3:
            await store.settle()
            await store.close()
            store = await open_store(tmp_path, uplinks=names)
        else:
            before, names = names, random.sample(NAMES, random.randrange(3) + 1)
            places = [names.index(each) if each in names else None for each in before]
            if len(before) == 1 and places == [None]:
                places = [0]
                waiting = {seq: {names[0]} for seq in waiting}
            await store.outbox.change_uplinks(names, places)
            waiting = {seq: each & {*names} or {names[0]} for seq, each in waiting.items()}
        counts = [sum(name in each for each in waiting.values()) for name in names]
        assert store.outbox.uplinks.rows == counts
        await store.settle()
        for number, name in enumerate(names):
            rows = await store.outbox.fetch(0, 1000, uplink=1 << number)
            assert [row.seq for row in rows] == [
                seq for seq, each in waiting.items() if name in each
            ]
    assert store.alarms == []
    await store.close()
