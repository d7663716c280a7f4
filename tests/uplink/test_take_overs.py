"""Take-overs: those that the broker names, and those that it does not."""

from gateway.uplink.errors import ClosedError, LinkError, TakenOverError
from gateway.uplink.take_overs import ALARM, ALONE_SECONDS, CLOSED_WITHIN, TakeOvers


def test_a_named_one_raises_the_alarm_once_and_ends_it() -> None:
    alarms: list[tuple[str, str]] = []
    looking = TakeOvers("tidegate-barn")
    looking.alarm = lambda name, text: alarms.append((name, text))
    error = TakenOverError("tidegate-barn")
    assert looking.ended(error, 1.0) is error
    looking.ended(error, 2.0)
    assert alarms == [(ALARM, str(error))]
    looking.look(ALONE_SECONDS - 1)
    assert len(alarms) == 1
    looking.look(ALONE_SECONDS)
    looking.look(ALONE_SECONDS + 1)
    assert alarms[1:] == [(ALARM, "")]


def test_two_silent_ends_within_a_minute_are_one() -> None:
    looking = TakeOvers("tidegate-barn")
    closed = ClosedError("tidegate-barn")
    assert looking.ended(closed, 0.0) is closed
    assert looking.ended(closed, CLOSED_WITHIN + 1) is closed
    found = looking.ended(closed, CLOSED_WITHIN + 2)
    assert isinstance(found, TakenOverError)
    assert "it seems that another client took over" in str(found)
    lost = LinkError("no answer to PINGREQ")
    assert looking.ended(lost, CLOSED_WITHIN + 3) is lost
