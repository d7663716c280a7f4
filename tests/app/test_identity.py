"""Data that was made on another board, and an identity that was exported."""

import sqlite3
from contextlib import AsyncExitStack, closing
from functools import partial
from pathlib import Path

import pytest

from gateway.app import identity
from gateway.app.identity import EXPORTED, MARK, MOVED, board
from gateway.app.parts import Happening, Stage
from gateway.config import host_name
from gateway.config.configuration import Configuration
from gateway.mqtt.message import Message
from gateway.settings.listener import ListenerSettings
from gateway.settings.uplink import UplinkSettings
from tests.support.disk.storage import until
from tests.support.gateway_here import Gateway
from tests.support.ports import free_port


class Board:
    """The files that tell a board."""

    def __init__(self, folder: Path) -> None:
        self.machine, self.serial = folder / "machine-id", folder / "serial"

    def become(self, machine: str = "", serial: str = "") -> None:
        """Be a board that has these, or none of one that is empty."""
        for file, text in ((self.machine, machine), (self.serial, serial)):
            file.unlink(missing_ok=True)
            if text:
                file.write_text(text)


@pytest.fixture
def this_board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Board:
    made = Board(tmp_path)
    monkeypatch.setattr(host_name, "MACHINE_IDS", (made.machine,))
    monkeypatch.setattr(identity, "SERIALS", (tmp_path / "none", made.serial))
    return made


def gateway_in(data: Path, stack: AsyncExitStack, uplinks: int = 0) -> Gateway:
    names = (None,) if uplinks == 1 else ("east", "west")[:uplinks]
    links = tuple(UplinkSettings(name=name, urls=("mqtt://127.0.0.1:1",)) for name in names)
    listener = ListenerSettings(port=free_port())
    return Gateway(Configuration("file", "barn", listeners=(listener,), uplinks=links), data, stack)


def order(gateway: Gateway, part: str, word: str) -> None:
    gateway.turn.now()
    message = Message(f"$CONTROL/tidegate/{part}", word.encode(), client_id="operator")
    assert gateway.publish(message) < 0x80


def follow(gateway: Gateway) -> dict[str, str]:
    """Return the alarms that are raised, by their names, from now on."""
    raised: dict[str, str] = {}

    def take(happening: Happening) -> None:
        if happening.kind == "alarm" and happening.stage is Stage.BEGINS:
            raised[happening.subject] = happening.text
        elif happening.kind == "alarm":
            raised.pop(happening.subject, None)

    gateway.event.listen(take)
    return raised


async def alarms_of(data: Path, *, confirm: bool = False) -> dict[str, str]:
    """Start and stop a gateway; return the alarms that it raised about its identity."""
    async with AsyncExitStack() as stack:
        gateway = gateway_in(data, stack)
        raised = follow(gateway)
        await gateway.start()
        at_start = dict(raised)
        if confirm:
            order(gateway, "identity", "confirm")
            assert not raised
    return at_start


def events(data: Path) -> list[tuple[str, str]]:
    with closing(sqlite3.connect(data / "tidegate.db")) as database:
        return list(database.execute("SELECT kind, subject FROM events ORDER BY id"))


def epochs(data: Path) -> list[str]:
    with closing(sqlite3.connect(data / "tidegate.db")) as database:
        return [epoch for (epoch,) in database.execute("SELECT epoch FROM starts ORDER BY start")]


def test_what_tells_a_board_is_hashed(this_board: Board) -> None:
    assert board() == {}  # a container
    this_board.become("0123456789abcdef\n", "100000005f2c1c4d\0")
    both = board()
    assert sorted(both) == ["board serial", "machine id"]
    assert all(-(2**63) <= value < 2**63 for value in both.values())
    assert len(set(both.values())) == 2
    this_board.become("uninitialized\n", "0000000000000000\0")
    assert board() == {}
    this_board.become("0123456789abcdef\n", "100000005f2c1c4d\n")
    assert board() == both
    this_board.serial.write_bytes(b"\xff\xff")
    assert sorted(board()) == ["machine id"]


@pytest.mark.uncovered
@pytest.mark.parametrize(
    ("there", "expected"),
    [
        (("one", "5f"), ""),
        (("two", "5f"), "(machine id differ)"),
        (("one", "60"), "(board serial differ)"),
        (("two", "60"), "(machine id and board serial differ)"),
        (("", ""), ""),
        (("one", ""), ""),
        (("", "60"), "(board serial differ)"),
    ],
)
async def test_another_board_is_told(
    tmp_path: Path, this_board: Board, there: tuple[str, str], expected: str
) -> None:
    data = tmp_path / "data"
    this_board.become("one", "5f")
    assert MOVED not in await alarms_of(data)
    this_board.become(*there)
    text = (await alarms_of(data)).get(MOVED, "")
    assert expected in text
    assert bool(text) == bool(expected)
    this_board.become("one", "5f")
    assert MOVED not in await alarms_of(data)  # nobody has confirmed the other one


async def test_it_is_told_at_each_start_until_it_is_confirmed(
    tmp_path: Path, this_board: Board, caplog: pytest.LogCaptureFixture
) -> None:
    data = tmp_path / "data"
    this_board.become("one")
    await alarms_of(data)
    this_board.become("one", "60")  # what was not known before is learnt
    await alarms_of(data)
    assert "identity" not in caplog.text
    this_board.become("one", "61")
    caplog.clear()
    assert "`tidegate uplink confirm`" in (await alarms_of(data))[MOVED]
    assert "the data of gateway barn was made on another board" in caplog.text
    assert ("alarm", MOVED) in events(data)
    assert MOVED in await alarms_of(data, confirm=True)
    assert MOVED not in await alarms_of(data)
    this_board.become("one", "60")
    assert MOVED in await alarms_of(data)


async def test_each_start_of_a_copy_has_an_epoch_of_its_own(
    tmp_path: Path, this_board: Board
) -> None:
    data, copy = tmp_path / "data", tmp_path / "copy"
    this_board.become("one", "5f")

    async def start(folder: Path) -> None:
        async with AsyncExitStack() as stack:
            await gateway_in(folder, stack, uplinks=1).start()

    await start(data)
    copy.mkdir()
    (copy / "tidegate.db").write_bytes((data / "tidegate.db").read_bytes())
    await start(data)
    await start(copy)
    assert epochs(data)[0] == epochs(copy)[0]
    assert len({*epochs(data), *epochs(copy)}) == 3


@pytest.mark.parametrize("part", ["uplink", "uplink/east"])
async def test_nothing_goes_up_where_the_identity_was_exported(
    tmp_path: Path, this_board: Board, part: str
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / MARK).write_text("at 2026-11-28 07:00:00 UTC into /root/barn.tar\n")
    this_board.become("one")

    def states(gateway: Gateway) -> list[object]:
        values = gateway.counters.values
        return [values.get(f"tidegate/uplink/{name}/state") for name in ("east", "west")]

    def paused(gateway: Gateway) -> bool:
        return states(gateway) == ["paused", "paused"]

    for _ in range(2):  # also after a restart
        async with AsyncExitStack() as stack:
            gateway = gateway_in(data, stack, uplinks=2)
            raised = follow(gateway)
            await gateway.start()
            text = raised[EXPORTED]
            assert "exported at 2026-11-28 07:00:00 UTC into /root/barn.tar" in text
            await until(partial(paused, gateway))
    async with AsyncExitStack() as stack:
        gateway = gateway_in(data, stack, uplinks=2)
        await gateway.start()
        order(gateway, part, "resume")
        assert not (data / MARK).exists()
        order(gateway, part, "resume")
        await until(lambda: states(gateway)[0] not in ("paused", None))
        assert (states(gateway)[1] == "paused") == (part == "uplink/east")


async def test_a_mark_that_cannot_be_taken_away_or_read(
    tmp_path: Path, this_board: Board, caplog: pytest.LogCaptureFixture
) -> None:
    data = tmp_path / "data"
    (data / MARK / "file").mkdir(parents=True)
    this_board.become("one")
    async with AsyncExitStack() as stack:
        gateway = gateway_in(data, stack, uplinks=1)
        raised = follow(gateway)
        await gateway.start()
        assert "as far as is known" in raised[EXPORTED]
        order(gateway, "uplink", "resume")
        assert EXPORTED not in raised
        assert "the next start sends nothing up" in caplog.text
