"""The count of what sessions are owed, by which all rows are deleted at once, beside the rows."""

from gateway.storage.sessions.broker_store import BrokerStore
from gateway.storage.sessions.session_journal import SessionJournal
from tests.support.broker.durable_broker import DurableHarness


def everything_is_counted(harness: DurableHarness) -> None:
    """Hold what the stores count against what is on disk, after a commit."""
    store = harness.broker.store
    assert isinstance(store, BrokerStore)
    sums = harness.disk.connection.execute("SELECT sum(messages) FROM delivery").fetchone()
    assert store._sessions._deliveries == (sums[0] or 0)
    of_sessions = [each.journal for each in harness.broker.sessions.values()]
    journals = [each for each in of_sessions if isinstance(each, SessionJournal)]
    assert sum(journal.deliveries for journal in journals) == (sums[0] or 0)
