"""The wall clock is set, whenever that is: nothing ends before its time, and all ends after it."""

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest

from crashtest.client import Client
from gateway.config.load import load
from gateway.mqtt.packets import Connect, Packet, PubAck, Publish, SubAck, Subscribe
from gateway.mqtt.packets import SubscriptionRequest as Request
from gateway.mqtt.properties import Properties
from tests.support.board_clock import NOW, BoardClock
from tests.support.disk.storage import until
from tests.support.gateway_here import Gateway
from tests.support.ports import free_port

YEARS = 10 * 365 * 86_400
HOUR = 3_600

CONFIGURATION = """
[[listener]]
port = {port}
[[channel]]
name = "jobs"
filter = "jobs"
inflight_timeout = {hour}
"""


class SetWhileRead(BoardClock):
    """Is set by `step` seconds when it has been read so many more times."""

    reads = 0
    step = 0

    def wall_ns(self) -> int:
        self.reads -= 1
        if not self.reads:
            self.set_by(self.step)
        return super().wall_ns()


@dataclass
class Left:
    """What there is of each kind of thing that time ends."""

    sessions: int = 1
    queued: int = 1
    retained: int = 1
    delayed: int = 1
    in_flight: int = 1  # of the channel, or waiting again after a restart
    timed_out: int = 0


ENDED = {"sessions": 0, "queued": 0, "retained": 0, "delayed": 0}


def look(gateway: Gateway) -> Left:
    """Return what is left when the gateway has seen what time it is."""
    broker = gateway.broker
    broker.tick(gateway.turn.instant)
    gateway.turn.end()
    broker.tick(gateway.turn.instant)
    (channel,) = broker.channels
    sessions = [each for each in broker.sessions.values() if each.client_id == "away"]
    return Left(
        len(sessions),
        sum(each.queue.messages for each in sessions),
        int(broker.retained.get("kept") is not None),
        broker.delays.waiting,
        channel.depth + channel.in_flight,
        channel.figures.timed_out,
    )


async def started(folder: Path, clock: BoardClock, stack: AsyncExitStack) -> Gateway:
    gateway = Gateway(load(folder / "gateway.toml"), folder / "data", stack)
    gateway.clock = clock
    await gateway.start()
    return gateway


async def answered(client: Client, packet: Packet, answer: type[Packet]) -> None:
    client.send(packet)
    async for each in client.packets():
        if isinstance(each, answer):
            return


async def leave_things(gateway: Gateway) -> Client:
    """Leave one thing of each kind; return the consumer, which acknowledges nothing."""
    port = gateway.listeners[0].port
    asleep = Properties(session_expiry_interval=HOUR)
    away = await Client.connect(port, Connect("away", properties=asleep))
    await answered(away, Subscribe(1, [Request("t", 1)]), SubAck)
    away.close()
    await until(lambda: "away" not in gateway.broker.clients)
    consumer = await Client.connect(port, Connect("consumer"))
    await answered(consumer, Subscribe(1, [Request("$share/jobs/jobs", 1)]), SubAck)
    publisher = await Client.connect(port, Connect("publisher"))
    expires = Properties(message_expiry_interval=HOUR)
    for packet in (
        Publish("t", b"x", 1, packet_id=1, properties=expires),
        Publish("kept", b"x", 1, retain=True, packet_id=2, properties=expires),
        Publish(f"$delay/{HOUR}/later", b"x", 1, packet_id=3),
        Publish("jobs", b"x", 1, packet_id=4),
    ):
        await answered(publisher, packet, PubAck)
    publisher.close()
    return consumer


Seen = list[tuple[str, Left]]


async def while_running(folder: Path, clock: SetWhileRead, step: int) -> Seen:
    async with AsyncExitStack() as stack:
        gateway = await started(folder, clock, stack)
        consumer = await leave_things(gateway)
        clock.set_by(step)
        seen = [("at once", look(gateway))]
        consumer.close()
    return [*seen, *await ended(folder, clock)]


async def while_stopped(folder: Path, clock: SetWhileRead, step: int) -> Seen:
    async with AsyncExitStack() as stack:
        consumer = await leave_things(await started(folder, clock, stack))
        consumer.close()
    clock.set_by(step)
    return await ended(folder, clock)


async def at_the_start(folder: Path, clock: SetWhileRead, step: int, reads: int = 1) -> Seen:
    async with AsyncExitStack() as stack:
        consumer = await leave_things(await started(folder, clock, stack))
        consumer.close()
    clock.step, clock.reads = step, reads
    return await ended(folder, clock)


async def during_the_start(folder: Path, clock: SetWhileRead, step: int) -> Seen:
    return await at_the_start(folder, clock, step, 4)


async def ended(folder: Path, clock: SetWhileRead) -> Seen:
    """Return what is left after a start, and what an hour later."""
    async with AsyncExitStack() as stack:
        gateway = await started(folder, clock, stack)
        seen = [("after the start", look(gateway))]
        clock.pass_time(HOUR + 15)  # of which 10 s may be until somebody looks
        return [*seen, ("an hour later", look(gateway))]


MOVES = {
    "forward": (NOW, YEARS),
    "back": (NOW, -YEARS),
    "to 1970": (NOW, 10 - NOW),
    "from 1970, by NTP": (10, NOW),
}

WHEN: tuple[Callable[[Path, SetWhileRead, int], Awaitable[Seen]], ...] = (
    while_running,
    while_stopped,
    at_the_start,
    during_the_start,
)


@pytest.mark.uncovered
async def test_nothing_ends_before_its_time_and_all_ends_after_it(tmp_path: Path) -> None:
    wrong = []
    for name, (wall, step) in MOVES.items():
        for when in WHEN:
            folder = tmp_path / f"{name} {when.__name__}"
            folder.mkdir()
            text = CONFIGURATION.format(port=free_port(), hour=HOUR)
            (folder / "gateway.toml").write_text(text)
            clock = SetWhileRead(wall, synchronized=wall == NOW)
            for moment, left in await when(folder, clock, step):
                expected = asdict(Left()) | (ENDED if moment == "an hour later" else {})
                for thing, count in asdict(left).items():
                    if count != expected[thing]:
                        wrong.append((name, when.__name__, moment, thing, count))
    assert not wrong
