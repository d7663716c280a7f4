"""Bytes of the database go wrong: it starts, and loses only what the damage took."""

import shutil
import sqlite3
from contextlib import aclosing, closing
from pathlib import Path
from random import Random

import pytest

from crashtest.gateway_process import GatewayProcess
from crashtest.publisher import Publisher
from tests.crash.conftest import LONG, MakeGateway
from tests.support.processes.crash_gateway import NOBODY_TAKES

DATABASE, WAL = "tidegate.db", "tidegate.db-wal"

MESSAGES = 150
PLACES = LONG or 2

WAL_HEADER, FRAME_HEADER = 32, 24
"""Bytes before the first frame of a WAL, and in each before its page (SQLite's file format)."""

TABLE_LEAF = 0x0D
"""The first byte of a page with rows; the number of its cells stands behind the third."""


async def publish_and_end(gateway: GatewayProcess, name: str, *, kill: bool) -> None:
    await gateway.start()
    publisher = Publisher(name, [], Random(1), persistent=False, window=5)
    async with aclosing(publisher):
        await publisher.join(gateway.port)
        await publisher.publish(MESSAGES)
        await publisher.idle()
        if kill:
            gateway.kill()
        else:
            gateway.stop()


def rows(folder: Path) -> set[bytes]:
    """Return what waits in the outbox, read from a copy."""
    copy = folder.with_name("copy")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder, copy)
    with closing(sqlite3.connect(copy / DATABASE)) as database:
        return {payload for (payload,) in database.execute("SELECT payload FROM outbox")}


def page_size(database: Path) -> int:
    return int.from_bytes(database.read_bytes()[16:18], "big")


def flip(file: Path, place: int, bit: int) -> None:
    content = bytearray(file.read_bytes())
    content[place] ^= 1 << bit
    file.write_bytes(content)


def bring_back(original: Path, data: Path) -> None:
    shutil.rmtree(data)
    shutil.copytree(original, data)


async def start_and_look(gateway: GatewayProcess) -> set[bytes]:
    """Return what waits after a start on the files as they are."""
    await gateway.start()
    gateway.kill()
    return rows(gateway.data)


@pytest.fixture
async def gateway(make_gateway: MakeGateway) -> GatewayProcess:
    """Give a killed gateway with messages both in its database and in the WAL."""
    gateway = make_gateway(NOBODY_TAKES)
    await publish_and_end(gateway, "early", kill=False)
    await publish_and_end(gateway, "late", kill=True)
    assert len(rows(gateway.data)) == 2 * MESSAGES
    return gateway


@pytest.mark.parametrize("how", ["cut off", "flipped"])
async def test_a_damaged_wal_costs_what_stood_behind_the_damage(
    gateway: GatewayProcess, tmp_path: Path, seed: int, how: str
) -> None:
    random = Random(seed)
    original = shutil.copytree(gateway.data, tmp_path / "original")
    frame = FRAME_HEADER + page_size(original / DATABASE)
    wal = (original / WAL).read_bytes()
    for _ in range(PLACES):
        place = random.randrange(len(wal))
        sound = WAL_HEADER + (place - WAL_HEADER) // frame * frame if place >= WAL_HEADER else 0
        bring_back(original, gateway.data)
        (gateway.data / WAL).write_bytes(wal[:sound])
        expected = rows(gateway.data)
        (gateway.data / WAL).write_bytes(wal[:place] if how == "cut off" else wal)
        if how == "flipped":
            flip(gateway.data / WAL, place, random.randrange(8))
        found = await start_and_look(gateway)
        assert found >= expected, f"byte {place} of {len(wal)}: {len(expected - found)} lost"


async def test_a_damaged_page_costs_at_most_its_own_rows(
    gateway: GatewayProcess, tmp_path: Path, seed: int
) -> None:
    random = Random(seed)
    await gateway.start()
    gateway.stop()  # which brings everything from the WAL into the database
    original = shutil.copytree(gateway.data, tmp_path / "original")
    expected = rows(original)
    content, size = (original / DATABASE).read_bytes(), page_size(original / DATABASE)
    for _ in range(PLACES):
        place = random.randrange(len(content))
        page = content[place // size * size :]
        bound = int.from_bytes(page[3:5], "big") if page[0] == TABLE_LEAF else 1
        bring_back(original, gateway.data)
        flip(gateway.data / DATABASE, place, random.randrange(8))
        found = await start_and_look(gateway)
        lost = expected - found
        assert len(lost) <= bound, f"byte {place}: {len(lost)} rows lost, of a page with {bound}"
