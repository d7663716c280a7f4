"""Take-overs: only what the fleet's broker says is one."""

import pytest

from gateway.uplink.errors import End, LinkError, TakenOverError
from gateway.uplink.take_overs import ALARM, ALONE_SECONDS, TakeOvers


def test_one_that_is_named_raises_the_alarm_once_and_ends_it() -> None:
    alarms: list[tuple[str, str]] = []
    looking = TakeOvers()
    looking.alarm = lambda name, text: alarms.append((name, text))
    error = TakenOverError("tidegate-barn")
    looking.ended(error)
    looking.ended(error)
    assert alarms == [(ALARM, str(error))]
    looking.check(ALONE_SECONDS - 1)
    assert len(alarms) == 1
    looking.check(ALONE_SECONDS)
    looking.check(ALONE_SECONDS + 1)
    assert alarms[1:] == [(ALARM, "")]


@pytest.mark.parametrize("end", [end for end in End if end is not End.TAKEN_OVER])
def test_no_other_end_is_one_however_often_it_comes(end: End) -> None:
    alarms: list[str] = []
    looking = TakeOvers("cloud")
    looking.alarm = lambda name, _text: alarms.append(name)
    for _ in range(3):
        looking.ended(LinkError("it ended", end))
    assert not alarms
    looking.ended(TakenOverError("tidegate-barn"))
    assert alarms == [f"{ALARM}_cloud"]
