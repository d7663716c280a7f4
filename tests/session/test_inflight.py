import tracemalloc
from collections.abc import Iterator

import pytest

from gateway.routing.where.message import Message
from gateway.session.delivery import Delivery
from gateway.session.inflight import MAXIMUM_BYTES, MAXIMUM_PACKET_ID, Inflight


def delivery(name: str = "a") -> Delivery:
    return Delivery(Message(name, qos=1), 1)


def ids(inflight: Inflight) -> list[int]:
    again = []
    while inflight.to_send_again:
        again.append(inflight.send_again()[0])
    return again


@pytest.fixture
def traced() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.usefixtures("traced")
def test_a_window_that_is_empty_again_takes_no_memory(together: bool) -> None:
    inflight, one = Inflight(MAXIMUM_PACKET_ID), delivery()
    before = tracemalloc.get_traced_memory()[0]
    found = [inflight.add(one) for _ in range(10_000)]
    most = tracemalloc.get_traced_memory()[0] - before
    assert most > 1_000_000
    if together:
        inflight.finish(found)
    else:
        for packet_id in found:
            inflight.remove(packet_id)
    del found
    # What measures the coverage of tests takes some, too.
    assert tracemalloc.get_traced_memory()[0] - before < most / 10


def test_packet_identifiers_rise_and_begin_again_at_1() -> None:
    inflight = Inflight(10)
    inflight._last = MAXIMUM_PACKET_ID - 1
    assert [inflight.add(delivery()) for _ in range(3)] == [MAXIMUM_PACKET_ID, 1, 2]


def test_a_packet_identifier_in_use_is_passed_over() -> None:
    inflight = Inflight(10)
    held = [inflight.add(delivery()) for _ in range(3)]
    assert inflight.remove(2) is not None
    inflight._last = MAXIMUM_PACKET_ID
    assert [inflight.add(delivery()), inflight.add(delivery())] == [2, 4]
    assert held == [1, 2, 3]


def test_many_get_the_packet_identifiers_that_each_would() -> None:
    inflight, other = Inflight(10), Inflight(10)
    for each in (inflight, other):
        each.add(delivery())
        each.add(delivery("b"))
        each._last = MAXIMUM_PACKET_ID - 1
    deliveries = [delivery("c") for _ in range(3)]
    assert inflight.add_all(deliveries) == [MAXIMUM_PACKET_ID, 3, 4]
    assert [other.add(each) for each in deliveries] == [MAXIMUM_PACKET_ID, 3, 4]
    assert inflight.room == other.room
    assert inflight.room[0] == 10 - 5
    assert inflight.alone == 5


def test_many_are_finished_up_to_one_that_is_none() -> None:
    inflight = Inflight(10)
    empty = inflight.room
    deliveries = [delivery() for _ in range(4)]
    inflight.add_all(deliveries)
    inflight.add(Delivery(Message("a", qos=2), 2))
    assert inflight.finish([2, 1, 7, 3]) == [deliveries[1], deliveries[0]]
    assert inflight.finish([3, 4, 5]) == deliveries[2:]
    assert [number for number, _ in inflight.items()] == [5]
    inflight.remove(5)
    assert inflight.room == empty
    inflight.add_all(deliveries)
    inflight.begin(10)
    assert inflight.finish([6, 7]) == []  # what is to be sent again is looked at one by one
    assert len(inflight) == 4


def test_an_unknown_packet_identifier() -> None:
    inflight = Inflight(10)
    assert inflight.find(1) is None
    assert inflight.remove(1) is None


def test_room_ends_at_the_limit() -> None:
    inflight = Inflight(2)
    room = [inflight.has_room]
    for _ in range(2):
        inflight.add(delivery())
        room.append(inflight.has_room)
    inflight.remove(1)
    assert [*room, inflight.has_room] == [True, True, False, True]
    assert len(inflight) == 1


def test_what_is_to_be_sent_again_has_room_however_large() -> None:
    inflight = Inflight(4)
    for _ in range(2):
        inflight.add(Delivery(Message("a", b"x" * MAXIMUM_BYTES, 1), 1))
    room = [inflight.has_room]
    inflight.begin(4)
    for _ in range(2):
        room.append(inflight.has_room)
        inflight.send_again()
    for packet_id in (1, 2):
        room.append(inflight.has_room)
        inflight.remove(packet_id)
    assert [*room, inflight.has_room] == [False, True, True, False, False, True]


def test_a_new_connection_is_sent_everything_again_in_order() -> None:
    inflight = Inflight(4)
    deliveries = {inflight.add(one): one for one in (delivery("a"), delivery("b"), delivery("c"))}
    inflight.remove(2)
    inflight.begin(4)
    packet_id, message = inflight.send_again()
    assert message.delivery is deliveries[packet_id]
    assert [packet_id, *ids(inflight)] == [1, 3]
    with pytest.raises(IndexError):
        inflight.send_again()


def test_what_waits_to_be_sent_again_takes_no_room() -> None:
    inflight = Inflight(10)
    for _ in range(5):
        inflight.add(delivery())
    inflight.begin(2)
    room = [inflight.has_room]
    for _ in range(2):
        inflight.send_again()
        room.append(inflight.has_room)
    for packet_id in (1, 4):  # 4 is acknowledged before it was sent again
        inflight.remove(packet_id)
        room.append(inflight.has_room)
    assert room == [True, True, False, True, True]
    assert ids(inflight) == [3, 5]
    assert len(inflight) == 3
