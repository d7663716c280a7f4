"""What an earlier start recorded is noticed, so that a start without a history deletes it."""

import pytest

from gateway.storage.history.history import History
from gateway.storage.history.recorded import is_recorded
from tests.support.disk.storage import Store

RULE = "INSERT INTO history_rules VALUES (1, 0, 'main', '#', NULL, 'live')"
SUBSCRIPTION = (
    "INSERT INTO history_subscriptions (since, client_id, topic_filter, qos, no_local, identity)"
    " VALUES (0, 'c', '#', 0, 0, 1)"
)
MESSAGE = (
    "INSERT INTO history"
    " (id, start, rules, payload_is_json, epoch, topic, payload, qos, retain, time)"
    " VALUES (1, 1, '[]', 0, 'e', 't', x'', 0, 0, 0)"
)


async def test_a_new_database_has_none(store: Store) -> None:
    assert not await is_recorded(store.database)


@pytest.mark.parametrize("statement", [RULE, SUBSCRIPTION, MESSAGE])
async def test_each_table_counts(store: Store, statement: str) -> None:
    store.writer.add(statement, ())
    await store.settle()
    assert await is_recorded(store.database)


async def test_one_that_was_on_counts_without_a_message(store: Store) -> None:
    for keep, recorded in ((3_600, True), (0, False)):
        await History(store.database, store.writer, store.counters, keep, 1 << 20).begin("e", 1, ())
        await store.settle()
        assert await is_recorded(store.database) is recorded
