"""The journal of a session of which nothing is kept: nothing waits for it."""

from gateway.session.journal import NO_JOURNAL
from tests.support.broker.spans import unkept


def test_nothing_waits_for_it() -> None:
    span = unkept(2, 2)
    assert NO_JOURNAL.sent(span) == 0
    assert NO_JOURNAL.released(span) == 0
    assert NO_JOURNAL.resent(span) == 0
