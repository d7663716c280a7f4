"""Acknowledgements that wait for somebody else's, and leave before the turn ends."""

import pytest

from gateway.mqtt.connection import Connection
from gateway.mqtt.output import Pledge

FIRST, SECOND = b"\x40\x02\x00\x01", b"\x40\x02\x00\x02"


class Wire:
    """Notes what is written to it."""

    def __init__(self) -> None:
        self.written = b""

    def write(self, data: bytes | bytearray, /) -> None:
        self.written += data


class Promising:
    """A connection that has promised two answers, each of which waits for somebody."""

    def __init__(self) -> None:
        self.touched = 0
        self.connection = Connection(1_024, on_output=self.touch)
        self.connection.output.transport = self.wire = Wire()
        self.pledges = [Pledge(0), Pledge(0)]
        for pledge, answer in zip(self.pledges, (FIRST, SECOND), strict=True):
            pledge.add()
            self.connection.promise_like(answer, 7, pledge)

    def touch(self) -> None:
        self.touched += 1


@pytest.fixture
def promising() -> Promising:
    return Promising()


def test_nobody_is_told_of_what_was_promised(promising: Promising) -> None:
    connection = promising.connection
    assert (promising.touched, connection.touched) == (0, False)
    assert (connection.unacknowledged, connection.packets_sent) == (2, 2)
    assert connection.answers == connection.output.size == 8
    assert connection.data_to_send(6) is None


def test_what_waits_for_nothing_any_more_leaves_at_once(promising: Promising) -> None:
    connection = promising.connection
    assert connection.leave_at_once() == 0
    promising.pledges[0].settle()
    assert connection.leave_at_once() == 4
    assert promising.wire.written == FIRST
    assert (connection.unacknowledged, connection.answers) == (1, 8)
    promising.pledges[1].settle()
    assert connection.leave_at_once() == 4
    assert promising.wire.written == FIRST + SECOND
    assert (connection.unacknowledged, connection.answers, promising.touched) == (0, 0, 0)


def test_the_second_leaves_behind_the_first(promising: Promising) -> None:
    promising.pledges[1].settle()
    assert promising.connection.leave_at_once() == 0
    promising.pledges[0].settle()
    assert promising.connection.leave_at_once() == 8
    assert promising.wire.written == FIRST + SECOND


def blocked(connection: Connection) -> None:
    connection.output.transport = None


def closed(connection: Connection) -> None:
    connection.close()


def asked_before(connection: Connection) -> None:
    assert connection.data_to_send(0) is None


@pytest.mark.parametrize("cause", [blocked, closed, asked_before, Connection.touch])
def test_it_is_left_to_the_turn_where_that_looks_at_the_connection(
    promising: Promising, cause: object
) -> None:
    assert callable(cause)
    cause(promising.connection)
    for pledge in promising.pledges:
        pledge.settle()
    assert promising.connection.leave_at_once() == 0
    assert (promising.touched, promising.wire.written) == (1, b"")
    assert promising.connection.data_to_send(0) == FIRST + SECOND


def test_what_waits_for_the_disk_is_asked_for_when_it_is_there(promising: Promising) -> None:
    connection = promising.connection
    for pledge in promising.pledges:
        connection.await_disk(pledge)
    assert (promising.touched, connection.data_to_send(6)) == (1, None)
    promising.pledges[0].settle()
    assert promising.touched == 2
    assert connection.data_to_send(6) == FIRST
    assert connection.data_to_send(7) == SECOND
