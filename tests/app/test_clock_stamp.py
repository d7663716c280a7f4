"""Nothing expires early because the clock was set, whenever that is, however the gateway ends."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from crashtest.client import Client
from gateway.app.uplink.outbox import outbox_settings
from gateway.clock import Clock
from gateway.config.load import load
from gateway.counters import Counters
from gateway.mqtt.packets import (
    Connect,
    Packet,
    PubAck,
    Publish,
    SubAck,
    Subscribe,
    SubscriptionRequest,
    Will,
)
from gateway.mqtt.properties import Properties
from gateway.storage.outbox.outbox import Outbox
from tests.support.board_clock import NOW, BoardClock
from tests.support.disk.storage import crash_image, until
from tests.support.gateway_here import Gateway
from tests.support.ports import free_port

YEARS = 10 * 365 * 86_400
EXPIRY = 3_600


CONFIGURATION = """
[[listener]]
port = {port}
[uplink]
url = "mqtt://127.0.0.1:1"  # nobody: what is to go up waits
[[uplink.rule]]
topic = "#"
stream = "aged"
[[uplink.stream]]
name = "aged"
maximum_age = "1h"
"""


async def started(folder: Path, clock: Clock, stack: AsyncExitStack) -> Gateway:
    file = folder.with_suffix(".toml")
    file.write_text(CONFIGURATION.format(port=free_port()))
    gateway = Gateway(load(file), folder, stack)
    gateway.clock = clock
    await gateway.start()
    return gateway


async def answered(client: Client, packet: Packet, answer: type[Packet]) -> None:
    client.send(packet)
    async for each in client.packets():
        if isinstance(each, answer):
            return


async def leave_things(gateway: Gateway) -> None:
    """Leave a session, what it is owed, a retained message and a will, all with an expiry."""
    port = gateway.listeners[0].port
    asleep = Properties(session_expiry_interval=EXPIRY)
    will = Will("w", b"gone", 1, properties=Properties(will_delay_interval=EXPIRY))
    away = await Client.connect(port, Connect("away", properties=asleep, will=will))
    await answered(away, Subscribe(1, [SubscriptionRequest("t", 1)]), SubAck)
    away.close()
    await until(lambda: "away" not in gateway.broker.clients)
    publisher = await Client.connect(port, Connect("publisher"))
    await publish(publisher, "t", 1)
    await publish(publisher, "t", 2, retain=True)
    publisher.close()


async def publish(client: Client, topic: str, number: int, *, retain: bool = False) -> None:
    expires = Properties(message_expiry_interval=EXPIRY)
    packet = Publish(topic, b"x", 1, retain=retain, packet_id=number, properties=expires)
    await answered(client, packet, PubAck)


async def what_is_left(folder: Path, clock: Clock) -> tuple[list[str], int, bool, list[str], int]:
    """Return the sessions, what the first is owed, what is retained, the wills and the outbox."""
    async with AsyncExitStack() as stack:
        gateway = await started(folder, clock, stack)
        gateway.broker.tick(gateway.turn.instant)
        sessions = gateway.broker.sessions
        owed = sum(len(session.queue) for session in sessions.values())
        kept = gateway.broker.retained.get("t") is not None
        wills = [name for name, session in sessions.items() if session.will is not None]
        return [*sessions], owed, kept, wills, await waiting(gateway)


async def waiting(gateway: Gateway) -> int:
    """Return how many messages wait for the fleet after a search for expired and old ones."""
    settings = outbox_settings(gateway.configuration, ["aged"])
    outbox = Outbox(gateway.database, gateway.writer, Counters(), settings)
    await outbox.load()
    while await outbox.sweep(gateway.clock.wall_ms(), gateway.clock.monotonic()):
        pass
    gateway.writer.add("DELETE FROM meta WHERE name = 'nothing'", ())  # a batch to wait for
    mark = gateway.writer.batch
    outbox.end_turn()
    await until(lambda: gateway.writer.committed >= mark)
    await outbox.close()
    count = "SELECT count(*) FROM outbox WHERE topic = 't'"  # a will may have come since
    (rows,) = await gateway.database.reader.query(count, (), lambda cursor: cursor.fetchone())
    return int(rows)


ALL = (["away"], 2, True, ["away"], 2)


def nothing(gateway: Gateway) -> None:
    """The clock is set, and the gateway has had no time to see it."""


def a_turn(gateway: Gateway) -> None:
    """The gateway handles something, as it does each second."""
    assert gateway.turn.instant


@pytest.mark.uncovered
@pytest.mark.parametrize("step", [YEARS, -YEARS])
@pytest.mark.parametrize(
    ("synchronized", "before_the_end", "reboots"),
    [
        (True, nothing, False),
        (True, a_turn, False),
        (True, a_turn, True),
        (False, nothing, True),  # NTP finds the time, then a power cut
        (False, a_turn, True),
    ],
)
async def test_a_clock_that_is_set_before_a_kill_or_a_power_cut(
    tmp_path: Path,
    step: int,
    *,
    synchronized: bool,
    before_the_end: Callable[[Gateway], None],
    reboots: bool,
) -> None:
    clock = BoardClock(synchronized=synchronized)
    async with AsyncExitStack() as stack:
        gateway = await started(tmp_path / "live", clock, stack)
        await leave_things(gateway)
        clock.set_by(step)
        before_the_end(gateway)
        mark = gateway.writer.batch
        if before_the_end is a_turn and step > 0:
            await until(lambda: gateway.writer.committed >= mark)
        image = crash_image(tmp_path / "live", tmp_path / "image")
    if reboots:
        clock.reboot()
    assert await what_is_left(image, clock) == ALL


@pytest.mark.parametrize("reboots", [False, True])
async def test_a_clock_that_is_set_right_before_a_stop(tmp_path: Path, *, reboots: bool) -> None:
    clock = BoardClock()
    async with AsyncExitStack() as stack:
        gateway = await started(tmp_path, clock, stack)
        await leave_things(gateway)
        clock.set_by(YEARS)
    if reboots:
        clock.reboot()
    assert await what_is_left(tmp_path, clock) == ALL


async def test_a_clock_that_is_set_while_the_gateway_is_down(tmp_path: Path) -> None:
    clock = BoardClock()
    async with AsyncExitStack() as stack:
        await leave_things(await started(tmp_path, clock, stack))
    clock.set_by(YEARS)
    assert await what_is_left(tmp_path, clock) == ALL


@pytest.mark.uncovered
async def test_a_board_that_begins_in_1970_each_time(tmp_path: Path) -> None:
    clock = BoardClock(10, synchronized=False)
    async with AsyncExitStack() as stack:
        gateway = await started(tmp_path, clock, stack)
        await leave_things(gateway)
        clock.set_by(NOW)
    clock.set_by(-NOW)
    clock.reboot()
    async with AsyncExitStack() as stack:
        gateway = await started(tmp_path, clock, stack)
        clock.set_by(NOW + 60)
        assert gateway.turn.instant
    assert await what_is_left(tmp_path, clock) == ALL


async def noted(gateway: Gateway) -> None:
    """Return when a commit has noted what the clock says."""
    a_turn(gateway)
    gateway.writer.add("DELETE FROM meta WHERE name = 'nothing'", ())
    mark = gateway.writer.batch
    gateway.writer.hand_over()
    await until(lambda: gateway.writer.committed >= mark)


@pytest.mark.uncovered
@pytest.mark.parametrize("reboots", [False, True])
@pytest.mark.parametrize("steps", [(-YEARS, YEARS), (YEARS, -YEARS)])
async def test_a_clock_that_is_set_there_and_back_keeps_nothing_in_the_outbox_for_years(
    tmp_path: Path, steps: tuple[int, int], *, reboots: bool
) -> None:
    clock = BoardClock()
    async with AsyncExitStack() as stack:
        gateway = await started(tmp_path / "live", clock, stack)
        await leave_things(gateway)
        for step in steps:
            clock.set_by(step)
            await noted(gateway)
        image = crash_image(tmp_path / "live", tmp_path / "image")
    if reboots:
        clock.reboot()
    assert await what_is_left(image, clock) == ALL
    clock.pass_time(EXPIRY + 15)
    *_, outbox = await what_is_left(image, clock)
    assert outbox == 0


@pytest.mark.uncovered
@pytest.mark.parametrize("synchronized", [True, False])
async def test_a_board_for_which_ntp_finds_the_time_keeps_nothing_for_years(
    tmp_path: Path, *, synchronized: bool
) -> None:
    clock = BoardClock(synchronized=synchronized)
    async with AsyncExitStack() as stack:
        await leave_things(await started(tmp_path, clock, stack))
    clock.reboot()
    clock.set_by(10 - NOW)
    clock.synchronized = False
    async with AsyncExitStack() as stack:
        gateway = await started(tmp_path, clock, stack)
        clock.set_by(NOW)
        await noted(gateway)
    assert await what_is_left(tmp_path, clock) == ALL
    clock.pass_time(EXPIRY + 15)
    assert await what_is_left(tmp_path, clock) == ([], 0, False, [], 0)


async def test_what_expires_while_the_gateway_is_down_is_gone(tmp_path: Path) -> None:
    clock = BoardClock()
    async with AsyncExitStack() as stack:
        await leave_things(await started(tmp_path, clock, stack))
    clock.reboot()
    clock.set_by(EXPIRY + 1)  # the time for which it was off
    assert await what_is_left(tmp_path, clock) == ([], 0, False, [], 0)


async def test_a_message_that_is_written_with_the_step_has_the_time_of_before(
    tmp_path: Path,
) -> None:
    clock = BoardClock()
    async with AsyncExitStack() as stack:
        gateway = await started(tmp_path / "live", clock, stack)
        await leave_things(gateway)
        connect = gateway.listeners[0].port, Connect("publisher")
        publisher = await Client.connect(*connect)
        gateway.writer.commit_delay = 0.0
        answers = asyncio.gather(*(publish(publisher, "t", 3) for _ in range(1)))
        gateway.writer.before_batch.insert(0, lambda: once(clock))
        await answers
        publisher.close()
        image = crash_image(tmp_path / "live", tmp_path / "image")
    assert await what_is_left(image, clock) == (ALL[0], 3, True, ["away"], 3)


def once(clock: BoardClock) -> None:
    """Set the clock when the batch is closed: its messages have come before."""
    if clock.wall_ms() < 1000 * (NOW + YEARS):
        clock.set_by(YEARS)
