"""The journal of a session of which nothing is kept: nothing waits for it."""

from gateway.mqtt.message import Message
from gateway.session.delivery import Delivery
from gateway.session.inflight_message import InflightAlone, Origin
from gateway.session.journal import NO_JOURNAL


def test_nothing_waits_for_it() -> None:
    delivery = Delivery(Message("t"), 1)
    assert NO_JOURNAL.lends(1, None)
    assert NO_JOURNAL.lends(2, 0.0)
    assert NO_JOURNAL.sent(delivery, 7) == 0
    assert NO_JOURNAL.released(delivery) == 0
    assert NO_JOURNAL.again(delivery) == 0
    origin = Origin("t", "c", None, 0.0)
    assert NO_JOURNAL.lend_alone(InflightAlone(origin, b"", 0, 0, 0.0, 0)) == 0
