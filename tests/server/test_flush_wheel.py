from gateway.broker.deadlines import Deadlines
from gateway.broker.instant import Instant
from gateway.mqtt.packets import Publish
from gateway.mqtt.properties import Properties
from gateway.server.flush_wheel import FlushWheel
from gateway.settings.broker import BrokerSettings
from gateway.settings.delivery import DeliveryClassSettings, DeliverySettings
from tests.support.disk.storage import until
from tests.support.processes.server import HeldWriter, Server, serve
from tests.support.raw_client import RawClient


class Connection:
    """Counts how often it is told that what it holds is due."""

    def __init__(self) -> None:
        self.flushed = 0

    def __call__(self) -> None:
        self.flushed += 1


def test_connections_are_written_when_they_are_due_and_no_sooner() -> None:
    deadlines = Deadlines()
    wheel = FlushWheel(deadlines, 10)
    first, second, third = Connection(), Connection(), Connection()
    for connection, due in ((first, 1.0), (second, 1.0), (third, 2.0)):
        assert wheel.add(connection, due)
    assert (wheel.sessions, len(deadlines)) == (3, 2)
    deadlines.run(Instant(0.5, 0))
    assert [each.flushed for each in (first, second, third)] == [0, 0, 0]
    deadlines.run(Instant(1.0, 0))
    assert [each.flushed for each in (first, second, third)] == [1, 1, 0]
    assert wheel.sessions == 1


def test_one_more_than_the_most_is_not_taken_and_counted() -> None:
    wheel = FlushWheel(Deadlines(), 1)
    assert wheel.add(Connection(), 1.0)
    assert not wheel.add(Connection(), 1.0)
    assert (wheel.sessions, wheel.refused) == (1, 1)


def test_a_connection_has_one_place_at_the_earliest_of_its_moments() -> None:
    deadlines = Deadlines()
    wheel = FlushWheel(deadlines, 2)
    moved, other = Connection(), Connection()
    for connection, due in ((moved, 9.0), (other, 9.0), (moved, 1.0), (moved, 5.0)):
        assert wheel.add(connection, due)
    assert (wheel.sessions, wheel.refused) == (2, 0)
    deadlines.run(Instant(1.0, 0))
    assert (moved.flushed, other.flushed, wheel.sessions) == (1, 0, 1)
    deadlines.run(Instant(9.0, 0))
    assert (moved.flushed, other.flushed, wheel.sessions) == (1, 1, 0)


def test_a_connection_that_holds_nothing_any_more_leaves_no_deadline() -> None:
    deadlines = Deadlines()
    wheel = FlushWheel(deadlines, 10)
    first, second = Connection(), Connection()
    for connection in (first, second):
        wheel.add(connection, 1.0)
    wheel.discard(first)
    wheel.discard(first)
    assert (wheel.sessions, len(deadlines)) == (1, 1)
    wheel.discard(second)
    assert (wheel.sessions, len(deadlines)) == (0, 0)
    deadlines.run(Instant(1.0, 0))
    assert (first.flushed, second.flushed) == (0, 0)


def held_for(seconds: float, sessions: int = 10) -> BrokerSettings:
    policy = DeliveryClassSettings("buffered", 3, 1000, round(1000 * seconds))
    return BrokerSettings(delivery=DeliverySettings(device=policy, flush_sessions=sessions))


async def subscriber(server: Server, name: str) -> RawClient:
    client = await server.clients.connect(name)
    await client.subscribe("t", 1)
    return client


async def received(client: RawClient) -> bytes:
    packet = await client.take(Publish)
    return packet.payload


async def test_what_is_held_leaves_by_itself() -> None:
    server = await serve(HeldWriter(), held_for(0.1))
    client = await subscriber(server, "c")
    publisher = await server.clients.connect("p")
    delivery = server.broker.sessions["c"].delivery
    for payload in (b"a", b"b"):
        flushes, size = delivery.flushes, delivery.bytes
        await publisher.send(Publish("t", payload))
        assert await received(client) == payload
        assert server.turn.flushes.sessions == 0
        assert (delivery.flushes - flushes, delivery.bytes - size) == (1, 7)
    assert delivery.delay(50) >= 0.07, "they were held"
    await server.close()


async def test_enough_messages_leave_at_once_and_those_behind_them_by_themselves() -> None:
    server = await serve(HeldWriter(), held_for(0.2))
    client = await subscriber(server, "c")
    publisher = await server.clients.connect("p")
    for payload in (b"a", b"b", b"c", b"d", b"e"):
        await publisher.send(Publish("t", payload))
        assert not await publisher.waiting()
    assert [await received(client) for _ in range(5)] == [b"a", b"b", b"c", b"d", b"e"]
    await server.close()


async def test_a_message_that_may_be_held_for_less_leaves_before_those_that_came_before() -> None:
    server = await serve(HeldWriter(), held_for(10.0))
    client = await subscriber(server, "c")
    publisher = await server.clients.connect("p")
    await publisher.send(Publish("t", b"a"))
    await until(lambda: server.turn.flushes.sessions == 1)
    expiring = Properties(message_expiry_interval=1)
    await publisher.send(Publish("t", b"b", properties=expiring))
    assert [await received(client) for _ in range(2)] == [b"a", b"b"]
    assert server.turn.flushes.sessions == 0
    await publisher.send(Publish("t", b"c"))
    await until(lambda: server.turn.flushes.sessions == 1)
    await client.close()
    await until(lambda: server.turn.flushes.sessions == 0)
    await server.close()


async def test_too_many_sessions_are_written_at_once() -> None:
    server = await serve(HeldWriter(), held_for(10.0, 1))
    clients = [await subscriber(server, name) for name in ("a", "b")]
    publisher = await server.clients.connect("p")
    await publisher.send(Publish("t", b"x"))
    await until(lambda: server.turn.flushes.refused == 1)
    sizes = [server.broker.clients[name].connection.output.size for name in ("a", "b")]
    written = sizes.index(0)
    assert sizes[1 - written] > 0
    assert await received(clients[written]) == b"x"
    await server.close()
