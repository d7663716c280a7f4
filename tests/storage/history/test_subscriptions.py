"""For each message of the history, the subscriptions that there were when it came."""

import pytest

from gateway.mqtt.message import Message
from gateway.routing.subscriptions.subscription import Subscription
from gateway.storage.history import subscriptions as history_subscriptions
from gateway.storage.history.history import TRIM_ROWS, History
from gateway.storage.history.reader import open_history
from gateway.storage.history.subscriptions import (
    TRIM_SUBSCRIPTIONS,
    HistorySubscriptions,
    RecordedSubscription,
)
from gateway.where.compile import compile_where
from tests.support.broker.subscribers import Someone
from tests.support.disk.storage import Store, until


async def settle(store: Store) -> None:
    """Have also that written which may wait."""
    mark = store.writer.batch
    store.writer.schedule_commit(0.0)
    store.writer.hand_over()
    await until(lambda: store.writer.committed >= mark)


class Recording:
    """A history with its subscriptions; each subscription is known by its client's letter."""

    def __init__(self, store: Store, keep: int = 3600, start: int = 1) -> None:
        self.store = store
        self.start = start
        self.history = History(store.database, store.writer, store.counters, keep, 1 << 20)
        self.subscriptions = HistorySubscriptions(store.database, store.writer, self.history)

    async def begin(self) -> "Recording":
        await self.history.begin("00a1b2c3d4", self.start, ())
        await self.subscriptions.begin()
        return self

    def do(self, steps: str, time: int = 1_000) -> None:
        """Carry out `+a` (client a subscribes), `-a` (no more) and `.` (a message comes)."""
        for step in steps.split():
            if step == ".":
                self.history.add(Message("t", b"x", received_at=time), ())
            elif step[0] == "+":
                self.subscriptions.add(ord(step[1]), Subscription(Someone(step[1]), "t", 1))
            else:
                self.subscriptions.discard(ord(step[1]))

    async def met(self) -> list[str]:
        """Return for each message, and then for now, the clients that were subscribed."""
        await settle(self.store)
        with open_history(self.store.database.path.parent) as reader:
            assert reader is not None
            rows = [*(row.id for row in reader.since(0)), None]
            return ["".join(s.client_id for s in reader.subscriptions(row)) for row in rows]

    async def kept(self) -> int:
        await settle(self.store)
        count = "SELECT count(*) FROM history_subscriptions"
        query = self.store.database.reader.query
        return int(await query(count, (), lambda cursor: cursor.fetchone()[0]))


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        (".", ["", ""]),
        ("+a . -a .", ["a", "", ""]),
        ("+a . +b . -a . -b +b .", ["a", "ab", "b", "b", "b"]),
        (". +a -a +a .", ["", "a", "a"]),
        ("+a +b . . -b", ["ab", "ab", "a"]),
        ("-z . +a", ["", "a"]),
    ],
)
async def test_each_message_with_the_subscriptions_of_its_time(
    store: Store, steps: str, expected: list[str]
) -> None:
    recording = await Recording(store).begin()
    recording.do(steps)
    assert await recording.met() == expected


async def test_a_subscription_comes_back_whole(store: Store) -> None:
    recording = await Recording(store).begin()
    where = compile_where("$clientid = 'a'", identity=False)
    whole = Subscription(Someone("c"), "$share/g/a/+", 2, no_local=True, where=where)
    recording.subscriptions.add(1, whole)
    recording.subscriptions.add(2, Subscription(Someone("d"), "#", 0))
    await settle(store)
    with open_history(store.database.path.parent) as reader:
        assert reader is not None
        assert reader.subscriptions(None) == [
            RecordedSubscription("c", "$share/g/a/+", 2, True, "$clientid = 'a'", False),
            RecordedSubscription("d", "#", 0, False, None, True),
        ]


async def test_what_no_message_met_leaves_nothing(store: Store) -> None:
    recording = await Recording(store).begin()
    recording.do(". +a -a +b -b")
    assert await recording.kept() == 0


async def test_with_a_start_all_earlier_ones_end(store: Store) -> None:
    (await Recording(store).begin()).do("+a +b .")
    await settle(store)
    later = await Recording(store, start=2).begin()
    later.do("+b .")
    assert await later.met() == ["ab", "b", "b"]


async def test_turned_off_there_are_none(store: Store) -> None:
    (await Recording(store).begin()).do("+a .")
    await settle(store)
    assert await (await Recording(store, keep=0, start=2).begin()).kept() == 0


async def test_they_go_with_the_last_message_that_met_them(store: Store) -> None:
    recording = await Recording(store, keep=10).begin()
    recording.do("+a . -a")
    recording.do("+b .", time=100_000)
    recording.do(". " * TRIM_ROWS, time=100_000)  # which lets the first message go
    for _ in range(TRIM_SUBSCRIPTIONS):
        recording.do("+c . -c", time=100_000)
    (first, *_, now) = await recording.met()
    assert (first, now) == ("b", "b")
    assert await recording.kept() == 1 + TRIM_SUBSCRIPTIONS


async def test_no_more_than_the_bound_are_kept(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_subscriptions, "ENDED_SUBSCRIPTIONS", 10)
    recording = await Recording(store).begin()
    recording.do("+a " + "+b . -b " * TRIM_SUBSCRIPTIONS)
    assert await recording.kept() == 12
    met = await recording.met()
    assert met == ["a"] * (TRIM_SUBSCRIPTIONS - 11) + ["ab"] * 11 + ["a"]


async def test_no_answer_waits_for_it(store: Store) -> None:
    recording = await Recording(store).begin()
    await settle(store)
    recording.do("+a +b -b")
    assert store.writer.pending_rows == 0
    recording.do(".")
    assert store.writer.pending_rows == 1
    assert await recording.met() == ["a", "a"]
    recording.do("-a +c -c")
    assert store.writer.pending_rows == 0
    assert await recording.met() == ["a", ""]
