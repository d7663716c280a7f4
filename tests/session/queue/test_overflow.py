"""What becomes of messages that a session's queue has no room for."""

import pytest

from gateway.session.limits import SessionLimits
from gateway.session.queue.memory import QueueMemory
from gateway.settings.when_full import WhenFull
from tests.support.broker.sessions import deliver, open_connection, payloads, persistent
from tests.support.broker.spans import unkept

REJECTED, DROPPED = "tidegate/queues/rejected", "publish/messages/dropped"


@pytest.mark.parametrize(
    ("when_full", "left", "counted"),
    [
        (WhenFull.REJECT, [b"0", b"1", b"2"], "rejected"),
        (WhenFull.DROP_OLDEST, [b"2", b"3", b"4"], "dropped_oldest"),
        (WhenFull.DROP_NEWEST, [b"0", b"1", b"2"], "dropped_newest"),
    ],
)
@pytest.mark.parametrize("together", [1, 5])
def test_what_becomes_of_what_a_full_queue_has_no_room_for(
    when_full: WhenFull, left: list[bytes], counted: str, together: int
) -> None:
    session = persistent(SessionLimits(maximum_queued_messages=3, when_full=when_full))
    contents = [b"%d" % number for number in range(5)]
    for first in range(0, 5, together):
        deliver(session, *contents[first : first + together])
    assert session.counters.values == {DROPPED: 2, f"tidegate/queues/{counted}": 2}
    session.attach(connection := open_connection(), 10)
    session.pump(0.0)
    assert payloads(connection) == left


@pytest.mark.parametrize("together", [1, 2])
def test_one_is_given_up_for_one_where_others_take_the_room(together: int) -> None:
    memory = QueueMemory()
    session = persistent(SessionLimits(when_full=WhenFull.DROP_OLDEST, memory=memory))
    deliver(session, b"1", b"2", b"3", b"4")
    memory.add(unkept())
    memory.maximum_bytes = 1
    for first in range(0, 2, together):
        deliver(session, *[b"5", b"6"][first : first + together])
    assert [len(session.queue), session.counters.count(DROPPED)] == [2, 4]
    assert session.counters.count("tidegate/queues/dropped_oldest") == 2
    assert session.counters.count("tidegate/queues/dropped_newest") == 2


def test_a_message_that_nobody_was_promised_is_no_loss_where_the_oldest_go() -> None:
    limits = SessionLimits(maximum_queued_messages=1, when_full=WhenFull.DROP_OLDEST)
    session = persistent(limits)
    session.attach(open_connection(), 1)
    counts = []
    for qos in (1, 1, 0, 1):
        deliver(session, qos=qos)
        dropped = session.counters.count("tidegate/queues/dropped_oldest")
        counts.append((len(session.queue), dropped, session.counters.count(REJECTED)))
    assert counts == [(0, 0, 0), (1, 0, 0), (1, 1, 0), (1, 1, 1)]
