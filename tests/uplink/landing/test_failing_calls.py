"""Every call of the landing writer fails in turn: what was acknowledged arrives all the same."""

import errno
import io
import json
import operator
import os
import shutil
import subprocess
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import gateway.uplink.landing.file as landing_file_module
import gateway.uplink.landing.live as live_module
from gateway.mqtt.output import Barrier
from gateway.uplink.landing.file import whole_records
from gateway.uplink.uplink import Uplink
from tests.crash.conftest import LONG
from tests.support.disk.failing_calls import BY_DESCRIPTOR, BY_PATH, ERRORS, SHORT, FailingCalls
from tests.support.disk.storage import Store, open_store, outbox_row, until
from tests.support.fleet.reconnecting import reconnect_after
from tests.support.fleet.uplinks import add_rows, connected, running, uplink_settings

WAITED = [1, 2]
LIVE = [11, 12, 13, 14, 15, 16]
CALLS = 64
"""More calls of a kind than one run of the scenario makes."""

KINDS = (*ERRORS, SHORT)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    reconnect_after(monkeypatch, 0.005, 0.01)
    monkeypatch.setattr(live_module, "CHECK_SECONDS", 0.01)
    monkeypatch.setattr(landing_file_module, "FILE_LINES", 4)
    monkeypatch.setattr(landing_file_module, "FILE_SECONDS", 0.03)


@asynccontextmanager
async def fresh_store(folder: Path) -> AsyncIterator[Store]:
    store = await open_store(folder)
    try:
        yield store
    finally:
        await store.close()


def landed(landing: Path) -> Counter[int]:
    """Return how often each number is in a whole file."""
    files = (landing / "barn").glob("[!.]*.jsonl") if landing.is_dir() else ()
    return Counter(json.loads(line)["seq"] for path in files for line in _lines(path))


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines()


def on_disk(landing: Path) -> set[int]:
    """Return the numbers that the next start finds in files, open ones too."""
    hidden = (landing / "barn").glob(".*.jsonl.open") if landing.is_dir() else ()
    records = [record for path in hidden for record in whole_records(path.read_bytes())[0]]
    return set(landed(landing)) | {record["seq"] for record in records}


async def waiting(store: Store) -> set[int]:
    """Return the numbers of the outbox on disk."""
    await store.settle()
    query = store.database.reader.query
    return set(await query("SELECT seq FROM outbox", (), lambda rows: [seq for (seq,) in rows]))


async def publish(store: Store, numbers: list[int]) -> None:
    """Have rows acknowledged, by their landing or by their commit."""
    rows = [outbox_row(number) for number in numbers]
    for row in rows:
        store.outbox.add(row, 0.0, 0.02, Barrier())
    store.writer.hand_over()
    await until(
        lambda: all(row.deleted or row.id <= store.outbox.writes.committed_id for row in rows)
    )


async def scenario(store: Store, landing: Path, calls: FailingCalls) -> None:
    """Land what waited, and live rows in two turns; end with all of them in files."""
    add_rows(store, WAITED[0], WAITED[-1])
    await store.settle()
    async with running(store, uplink_settings(directory=landing)) as uplink:
        await _failed_or_connected(calls, uplink)
        await publish(store, LIVE[:3])
        await publish(store, LIVE[3:])
        await until(lambda: bool(calls.failed) or store.outbox.rows == 0)
        calls.fails = lambda number: False
        await connected(uplink)
        await until(lambda: store.outbox.rows == 0)
    if on_disk(landing) != set(landed(landing)):
        async with running(store, uplink_settings(directory=landing)) as uplink:
            await connected(uplink)


@pytest.mark.uncovered
async def test_no_call_that_fails_once_costs_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that fails leaves no line out; few of them let lines land twice, under their numbers."""
    failed: Counter[str] = Counter()
    twice: Counter[str] = Counter()
    for name in (*BY_PATH, *BY_DESCRIPTOR):
        for number in range(CALLS):
            before = failed[name]
            for kind in KINDS if LONG else [KINDS[(len(name) + number) % len(KINDS)]]:
                folder = tmp_path / f"{name}-{number}-{kind}"
                with monkeypatch.context() as patched:
                    calls = FailingCalls(patched, folder / "landing")
                    calls.error, calls.only = kind, (name,)
                    calls.fails = partial(operator.eq, number)
                    (folder / "data").mkdir(parents=True)
                    async with fresh_store(folder / "data") as store:
                        await scenario(store, folder / "landing", calls)
                found = landed(folder / "landing")
                assert set(found) == {*WAITED, *LIVE}, (name, number, kind)
                failed.update(calls.failed)
                if max(found.values()) > 1:
                    twice.update(calls.failed)
                shutil.rmtree(folder)
            if failed[name] == before:
                break  # it is called no more often
    assert {"open", "write", "fsync", "fdatasync", "rename", "mkdir", "close"} <= set(failed)
    # of a folder whose sync fails nobody knows whether it has the name
    assert set(twice) <= {"open", "fsync", "close"}, twice


@pytest.mark.uncovered
@pytest.mark.parametrize("kind", ERRORS)
async def test_while_calls_fail_everything_acknowledged_is_on_disk_somewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Not for a moment is it in neither the outbox nor a file that the next start finds."""
    for number in range(0, CALLS, 1 if LONG else 9):
        folder = tmp_path / str(number)
        landing = folder / "landing"
        with monkeypatch.context() as patched:
            calls = FailingCalls(patched, landing)
            calls.error = kind
            calls.fails = partial(operator.le, number)
            (folder / "data").mkdir(parents=True)
            async with fresh_store(folder / "data") as store:
                async with running(store, uplink_settings(directory=landing)) as uplink:
                    await _failed_or_connected(calls, uplink)
                    await publish(store, LIVE)
                    assert (await waiting(store)) | on_disk(landing) == set(LIVE)
                    if calls.failed:
                        await until(lambda: "landing folder cannot be written" in uplink.error)
                    calls.fails = lambda number: False
                    await connected(uplink)
                    await until(lambda: store.outbox.rows == 0)
                if on_disk(landing) != set(landed(landing)):
                    async with running(store, uplink_settings(directory=landing)) as uplink:
                        await connected(uplink)
        assert set(landed(landing)) == set(LIVE), (number, kind)
    assert os.strerror(kind) in caplog.text


async def _failed_or_connected(calls: FailingCalls, uplink: Uplink) -> None:
    await until(lambda: bool(calls.failed) or uplink.state == "connected")


def _file_in_its_place(landing: Path) -> None:
    shutil.rmtree(landing)
    landing.write_text("a file where a folder should be")


def _link_that_leads_nowhere(landing: Path) -> None:
    shutil.rmtree(landing)
    landing.symlink_to("nowhere/at/all")


def _own_folder_is_a_file(landing: Path) -> None:
    shutil.rmtree(landing / "barn")
    (landing / "barn").write_text("a file")


def _moved_away(landing: Path) -> None:
    landing.rename(landing.with_name("away"))
    landing.write_text("a file")


def _put_right(landing: Path) -> None:
    if landing.is_symlink() or landing.is_file():
        landing.unlink()
    elif (landing / "barn").is_file():
        (landing / "barn").unlink()
    if (away := landing.with_name("away")).exists():
        away.rename(landing)


@pytest.mark.parametrize("ends", ["at once", "stopped meanwhile", "killed meanwhile"])
@pytest.mark.parametrize(
    "take", [_file_in_its_place, _link_that_leads_nowhere, _own_folder_is_a_file, _moved_away]
)
async def test_lines_of_an_open_file_outlive_a_folder_that_cannot_be_made_again(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    take: Callable[[Path], None],
    ends: str,
) -> None:
    monkeypatch.setattr(landing_file_module, "FILE_LINES", 1_000)
    monkeypatch.setattr(landing_file_module, "FILE_SECONDS", 600.0)
    landing = tmp_path / "landing"
    settings = uplink_settings(directory=landing)
    (tmp_path / "data").mkdir()
    store = await open_store(tmp_path / "data")
    async with running(store, settings) as uplink:
        await connected(uplink)
        await publish(store, LIVE)
        assert on_disk(landing) == set(LIVE)
        take(landing)
        monkeypatch.setattr(landing_file_module, "FILE_SECONDS", 0.03)
        await until(lambda: store.outbox.rows == len(LIVE))
        assert await waiting(store) == set(LIVE)
        assert "back in the outbox" in caplog.text
        await publish(store, [21, 22])
        if ends == "at once":
            await until(lambda: uplink.state == "disconnected")
            _put_right(landing)
            await connected(uplink)
            await until(lambda: store.outbox.rows == 0)
        elif ends == "killed meanwhile":
            shutil.copytree(tmp_path / "data", tmp_path / "killed")
    await store.close()
    if ends != "at once":
        _put_right(landing)
        store = await open_store(tmp_path / ("data" if ends[0] == "s" else "killed"))
        async with running(store, settings) as uplink:
            await connected(uplink)
            await until(lambda: store.outbox.rows == 0)
        await store.close()
    found = landed(landing)
    assert set(found) == {*LIVE, 21, 22}
    assert take is _moved_away or max(found.values()) == 1
    assert store.counters.count("tidegate/uplink/landing_put_back") == (
        len(LIVE) if ends == "at once" else 0
    )


@pytest.mark.parametrize("calls_that_fail", [("write",), ("fdatasync",), ("write", "open")])
async def test_a_disk_that_is_full_for_a_while_makes_no_line_land_twice(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    store: Store,
    calls_that_fail: tuple[str, ...],
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(landing_file_module, "FILE_SECONDS", 0.2)
    monkeypatch.setattr(landing_file_module, "FILE_LINES", 1_000)
    landing = tmp_path / "landing"
    calls = FailingCalls(monkeypatch, landing)
    calls.error = errno.ENOSPC
    async with running(store, uplink_settings(directory=landing)) as uplink:
        await connected(uplink)
        await publish(store, LIVE)
        calls.only = calls_that_fail
        calls.fails = lambda number: True
        await publish(store, [21, 22])
        await until(lambda: bool(calls.failed) and "cannot be written" in caplog.text)
        calls.fails = lambda number: False
        await connected(uplink)
        await until(lambda: store.outbox.rows == 0)
    assert set(landed(landing)) == {*LIVE, 21, 22}
    # a sync that fails on and on leaves open what is on disk
    assert calls_that_fail == ("fdatasync",) or max(landed(landing).values()) == 1
    assert store.counters.count("tidegate/uplink/landing_put_back") in (0, len(LIVE))


async def test_an_open_file_is_kept_while_the_link_is_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: Store
) -> None:
    """It cannot be named, and then its folder goes too."""
    monkeypatch.setattr(landing_file_module, "FILE_LINES", len(LIVE))
    monkeypatch.setattr(landing_file_module, "FILE_SECONDS", 600.0)
    landing = tmp_path / "landing"
    calls = FailingCalls(monkeypatch, landing)
    async with running(store, uplink_settings(directory=landing)) as uplink:
        await connected(uplink)
        calls.fails = lambda number: True
        calls.only = ("rename",)
        await publish(store, LIVE)
        await until(lambda: uplink.state == "disconnected")
        assert store.outbox.rows == 0
        assert on_disk(landing) == set(LIVE)
        _remove(landing)
        calls.fails = lambda number: False
        await until(lambda: uplink.state == "connected")
    assert landed(landing) == Counter(LIVE)


def _remove(folder: Path) -> None:
    """Remove a folder by a program whose calls do not fail."""
    subprocess.run(["rm", "-r", folder], check=True)


async def test_a_file_that_cannot_be_named_hinders_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    """An earlier run left two, and the disk gives nothing of one."""
    folder = tmp_path / "landing" / "barn"
    folder.mkdir(parents=True)
    record = '{{"epoch":"00a1b2c3d4","stream":"{}","seq":7}}\n'
    for stream in ("bad", "good"):
        (folder / f".00a1b2c3d4.{stream}.7.jsonl.open").write_text(record.format(stream))
    read = io.open

    def refusing(file: str | Path, *more: Any, **named: Any) -> Any:
        if str(file).endswith(".bad.7.jsonl.open"):
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(file))
        return read(file, *more, **named)

    with monkeypatch.context() as patched:
        patched.setattr(io, "open", refusing)
        async with running(store, uplink_settings(directory=tmp_path / "landing")) as uplink:
            await connected(uplink)
            await publish(store, [8])
    assert set(landed(tmp_path / "landing")) == {7, 8}
    assert "bad.7.jsonl.open holds messages that were acknowledged" in caplog.text
    async with running(store, uplink_settings(directory=tmp_path / "landing")) as uplink:
        await connected(uplink)
    assert landed(tmp_path / "landing") == Counter({7: 2, 8: 1})
