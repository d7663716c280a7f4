"""The disk fails between write and commit: nothing is acknowledged that it did not keep."""

import asyncio
import shutil
import sqlite3
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, closing, suppress
from pathlib import Path
from random import Random

import pytest

from crashtest.client import PATIENCE
from crashtest.gateway_process import EndedError, GatewayProcess
from crashtest.participant import until
from crashtest.publisher import Publisher
from crashtest.rounds import Rounds
from tests.crash.conftest import LONG, MakeGateway
from tests.support.disk.earlier_version import make_earlier
from tests.support.processes.crash_faults import Strace, database_files, start_files, tracer
from tests.support.processes.crash_gateway import (
    OUTBOX_FIRST,
    QUICK_FIGURES,
    compare,
    kept,
    retained,
    until_figure,
    until_kept,
)

pytestmark = pytest.mark.strace

WRITES = ("pwrite64", "fdatasync", "ftruncate")

OF_A_START = (*WRITES, "openat", "unlink", "rename", "fsync", "pread64", "fcntl", "flock")
"""What a start does with the database's files, and with what it makes beside them."""

ERRORS = ("EIO", "ENOSPC", "EROFS", "EACCES", "ENOENT")

FAULT_SECONDS = 0.4
"""For how long calls fail from the first on."""

ALARM = "$SYS/broker/tidegate/alarm/storage"

PASSING = [
    "fdatasync:error=EIO:when=1..2",
    "fdatasync:error=ENOSPC:when=2..5",
    "pwrite64:error=EIO:when=1",
    "pwrite64:error=EIO:when=5+11",
    "pwrite64:error=ENOSPC:when=3+7",
]
"""Which calls on the WAL fail, counted from a moment at which publishers are busy."""

LASTING = ["fdatasync:error=EIO", "pwrite64:error=ENOSPC"]

KILLS_AT_CALLS = LONG or 2
STARTS = LONG or 5

FIRST = ("pwrite64:error=EIO:when=1..2", "openat:error=ENOENT:when=2..24")
"""Faults of the first starts: one that surely happens, and a folder that cannot be listed."""


@asynccontextmanager
async def busy(gateway: GatewayProcess, seed: int) -> AsyncIterator[list[Publisher]]:
    """Start the gateway; give publishers of QoS 1 and 2 that publish until it is gone."""
    await gateway.start()
    async with AsyncExitStack() as stack:
        publishers = [
            Publisher(f"qos{qos}", [], Random(seed), persistent=False, qos=qos, window=20)
            for qos in (1, 2)
        ]
        for publisher in publishers:
            stack.push_async_callback(publisher.aclose)
            await publisher.join(gateway.port)
        tasks = [asyncio.create_task(publisher.publish_freely()) for publisher in publishers]
        await until_kept(publishers[0], 1)
        yield publishers
        gateway.kill()
        await asyncio.gather(*tasks)


def strike(gateway: GatewayProcess, fault: str, *files: Path) -> Strace:
    """Return a tracer that makes calls on the WAL, or these files, fail."""
    assert gateway.process is not None
    paths = files or (gateway.data / "tidegate.db-wal",)
    file = gateway.folder / "trace"
    return Strace(gateway.process.pid, file, WRITES, inject=[fault], paths=paths)


@pytest.mark.parametrize("fault", PASSING)
async def test_a_fault_that_passes_costs_nothing_that_was_acknowledged(
    make_gateway: MakeGateway, tmp_path: Path, seed: int, fault: str
) -> None:
    gateway = make_gateway(QUICK_FIGURES)
    async with busy(gateway, seed) as publishers:
        with strike(gateway, fault) as strace:
            await until(lambda: strace.injected > 0, "a call fails")
            await asyncio.sleep(FAULT_SECONDS)
        assert await until_figure(gateway, "tidegate/storage/failures")
        for publisher in publishers:
            await until_kept(publisher, 20)
        assert await retained(gateway.port, ALARM) == ""
    assert compare(gateway, publishers, tmp_path / "scratch") == []


@pytest.mark.parametrize("fault", LASTING)
async def test_nothing_is_acknowledged_while_the_disk_refuses(
    make_gateway: MakeGateway, tmp_path: Path, seed: int, fault: str
) -> None:
    gateway = make_gateway(QUICK_FIGURES)
    async with busy(gateway, seed) as publishers:
        with strike(gateway, fault) as strace:
            # at the second failure what was acknowledged before the first has come
            failures = await until_figure(gateway, "tidegate/storage/failures", 2)
            before = [kept(publisher) for publisher in publishers]
            await until_figure(gateway, "tidegate/storage/failures", failures + 1)
            assert [kept(publisher) for publisher in publishers] == before
            assert strace.injected > 1
            assert "cannot be written" in await retained(gateway.port, ALARM)
            assert gateway.process is not None
            gateway.process.kill()  # before the disk is well again
        assert [kept(publisher) for publisher in publishers] == before
    assert compare(gateway, publishers, tmp_path / "scratch") == []


async def test_a_checkpoint_that_fails_costs_nothing(
    make_gateway: MakeGateway, tmp_path: Path, seed: int
) -> None:
    gateway = make_gateway(OUTBOX_FIRST)
    async with busy(gateway, seed) as publishers:
        fault = "pwrite64,fdatasync:error=EIO"
        with strike(gateway, fault, gateway.data / "tidegate.db") as strace:
            await until(lambda: strace.injected > 1, "checkpoints fail")
            await until_kept(publishers[0], 20)
        await until_kept(publishers[0], 20)
    assert compare(gateway, publishers, tmp_path / "scratch") == []


class Struck(Rounds):
    """Rounds whose kills come at a write or a sync of the database, drawn by lot."""

    async def strike(self) -> None:
        call = self.random.choice(["pwrite64", "pwrite64", "fdatasync"])
        fault = f"{call}:signal=KILL:when={self.random.randint(1, 60)}"
        process = self.gateway.process
        assert process is not None
        with strike(self.gateway, fault, *database_files(self.gateway.data)):
            await until(lambda: process.poll() is not None, f"killed by {fault}")
        self.gateway.kill()
        self.figures.kills += 1


async def test_killed_between_write_and_commit_nothing_acknowledged_is_lost(
    make_gateway: MakeGateway, seed: int
) -> None:
    rounds = Struck(make_gateway(OUTBOX_FIRST), seed)
    await rounds.run(KILLS_AT_CALLS)
    assert rounds.findings == []


def as_it_is(database: Path) -> None:
    """Leave what a kill left."""
    assert database.is_file()


def of_another_program(database: Path) -> None:
    """Make a database of other pages, as `sqlite3 old .dump | sqlite3 new` does."""
    new = database.with_name("new")
    with closing(sqlite3.connect(database)) as old, closing(sqlite3.connect(new)) as copy:
        copy.executescript("\n".join(old.iterdump()))
    new.rename(database)


def of_another_schema(database: Path) -> None:
    """Leave a database whose rows have to be carried over."""
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute("DROP TABLE clock_spans")


def damaged(database: Path) -> None:
    """Leave a note that has the next start salvage."""
    database.with_name(f"{database.name}.damaged").write_text("found by an earlier run\n")


STATES = (as_it_is, make_earlier, of_another_program, of_another_schema, damaged)


def ends(trace: Path) -> bool:
    """Return whether the last line is the end of a thread."""
    return trace.read_bytes().rstrip().endswith(b"+++")


async def test_a_start_on_a_disk_that_fails_loses_nothing(
    make_gateway: MakeGateway, tmp_path: Path, seed: int
) -> None:
    """Whichever of its calls fails: it serves, or it says so and the next start serves."""
    random = Random(seed)
    gateway = make_gateway(OUTBOX_FIRST)
    async with busy(gateway, seed) as publishers:
        await until_kept(publishers[0], 50)
    before = shutil.copytree(gateway.data, tmp_path / "before")
    trace, injected = tmp_path / "trace", 0
    for start in range(STARTS):
        call, error = random.choice(OF_A_START), random.choice(ERRORS)
        fault = f"{call}:error={error}:when={random.randint(1, 12)}..{random.randint(12, 30)}"
        if start < len(FIRST):
            fault = FIRST[start]
        shutil.rmtree(gateway.data)
        shutil.copytree(before, gateway.data)
        STATES[start % len(STATES)](gateway.data / "tidegate.db")
        files = start_files(gateway.data)
        gateway.wrapper = tracer(trace, OF_A_START, fault, files)
        with suppress(EndedError):
            await gateway.start()
        assert "Traceback" not in gateway.log(), fault
        gateway.kill()
        await until(lambda: ends(trace), "the tracer has written all")  # it outlives the gateway
        injected += trace.read_text(errors="replace").count("(INJECTED)")
        gateway.wrapper = []
        await gateway.start()
        gateway.kill()
        assert compare(gateway, publishers, tmp_path / "scratch") == [], fault
    assert injected, "no call failed"


@pytest.mark.parametrize("calls", ["4", "5", "5..6"])
async def test_a_fault_that_passes_does_not_cost_the_write_ahead_log(
    make_gateway: MakeGateway, tmp_path: Path, calls: str
) -> None:
    """SQLite tells an error in the switch to it only by not switching.

    strace counts the calls of each thread, so that the thread of the database meets the same faults
    in what the start writes: that is tried again. With two of them the gateway is in memory first,
    and restarts as soon as the disk takes a database.
    """
    gateway = make_gateway(OUTBOX_FIRST)
    files = [*database_files(gateway.data), gateway.data / "tidegate.db-journal"]
    trace = tmp_path / "trace"
    gateway.wrapper = tracer(trace, WRITES, f"fdatasync:error=EIO:when={calls}", files)
    await gateway.start()
    async with asyncio.timeout(PATIENCE):
        while await _durability(gateway) != "commit":  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(0.05)
    gateway.kill()
    header = (gateway.data / "tidegate.db").read_bytes()[:20]
    assert "(INJECTED)" in trace.read_text(errors="replace")
    assert header[18:] == b"\2\2"  # the file format: write-ahead


async def _durability(gateway: GatewayProcess) -> str:
    """Return the figure, "" while the gateway restarts."""
    try:
        return await retained(gateway.port, "$SYS/broker/tidegate/storage/durability")
    except (OSError, EndedError):
        return ""
