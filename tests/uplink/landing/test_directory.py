"""The directory destination: files appear whole, and rows end only after them."""

import asyncio
import errno
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import gateway.uplink.landing.file as landing_file_module
from gateway.mqtt.output import Barrier
from tests.support.disk.storage import Store, crash_image, open_store, outbox_row, until
from tests.support.fleet.reconnecting import reconnect_after
from tests.support.fleet.uplinks import (
    add_rows,
    connected,
    folder_files,
    make_uplink,
    running,
    uplink_settings,
)


def _records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


async def test_a_file_is_closed_after_a_while(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(landing_file_module, "FILE_SECONDS", 0.3)
    folder = tmp_path / "landing" / "barn"
    async with running(store, uplink_settings(directory=tmp_path / "landing")) as uplink:
        await connected(uplink)
        add_rows(store, 1, 2)
        await until(lambda: store.outbox.writes.committed_id == 2)
        add_rows(store, 1, 1, "slow")
        await until(lambda: store.outbox.rows == 0)
        add_rows(store, 3, 3)
        await until(lambda: store.outbox.rows == 0)
        assert store.counters.values["tidegate/uplink/destination"] == str(tmp_path / "landing")
    assert folder_files(folder) == [
        "00a1b2c3d4.main.1-2.2.jsonl",
        "00a1b2c3d4.main.3-3.1.jsonl",
        "00a1b2c3d4.slow.1-1.1.jsonl",
    ]
    assert [record["seq"] for record in _records(folder / "00a1b2c3d4.main.1-2.2.jsonl")] == [1, 2]
    figures = ("sent", "acknowledged", "resent")
    assert [store.counters.count(f"tidegate/uplink/{name}") for name in figures] == [4, 4, 0]


@pytest.mark.uncovered
async def test_a_file_is_closed_at_a_thousand_lines_and_at_stop(
    store: Store, tmp_path: Path
) -> None:
    add_rows(store, 1, 2_500)
    await store.settle()
    folder = tmp_path / "landing" / "barn"
    async with running(store, uplink_settings(directory=tmp_path / "landing")):
        await until(lambda: store.outbox.rows == 500)
        assert len(folder_files(folder)) == 2
    assert folder_files(folder) == [
        "00a1b2c3d4.main.1-1000.1000.jsonl",
        "00a1b2c3d4.main.1001-2000.1000.jsonl",
        "00a1b2c3d4.main.2001-2500.500.jsonl",
    ]
    records = [record for name in folder_files(folder) for record in _records(folder / name)]
    assert [record["seq"] for record in records] == list(range(1, 2_501))
    assert all(record["resent"] for record in records)  # they waited before the start
    assert store.outbox.rows == 0


async def test_large_payloads_close_files_earlier(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(landing_file_module, "MAX_COLLECTED_BYTES", 10_000)
    add_rows(store, 1, 5, payload=bytes(4_000))
    async with running(store, uplink_settings(directory=tmp_path / "landing")):
        await until(lambda: store.outbox.rows <= 2)
    assert [name.split(".")[2] for name in folder_files(tmp_path / "landing" / "barn")] == [
        "1-3",
        "4-5",
    ]


async def test_what_nobody_waits_for_is_gathered_and_lands_together(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(landing_file_module, "FILE_LINES", 5)
    settings = uplink_settings(directory=tmp_path / "landing", landing_interval=3_600.0)
    folder = tmp_path / "landing" / "barn"
    async with running(store, settings) as uplink:
        await connected(uplink)
        for number in range(1, 5):
            add_rows(store, number, number)
            await store.settle()
        assert (folder_files(folder), store.outbox.rows) == ([], 4)
        add_rows(store, 5, 5)  # as many as a file may have; this one is not on disk yet
        await until(lambda: store.outbox.rows == 1)
        await store.settle()
        assert folder_files(folder) == [".00a1b2c3d4.main.1.jsonl.open"]
    assert folder_files(folder) == ["00a1b2c3d4.main.1-5.5.jsonl"]


async def test_left_over_files_go_and_others_stay(store: Store, tmp_path: Path) -> None:
    folder = tmp_path / "barn"
    folder.mkdir()
    for name in (".00a1b2c3d4.main.1-2.2.jsonl.tmp", "00a1b2c3d4.main.1-2.2.jsonl", ".other"):
        (folder / name).write_text("x")
    async with running(store, uplink_settings(directory=tmp_path)) as uplink:
        await connected(uplink)
    assert folder_files(folder) == [".other", "00a1b2c3d4.main.1-2.2.jsonl"]


@pytest.mark.parametrize("waited", [False, True])
async def test_rows_are_removed_only_after_the_folder_was_synced(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, waited: bool
) -> None:
    """What waited until its file has its name, live rows until a hidden file has its own."""
    seen: list[tuple[list[str], int]] = []
    fsync = os.fsync
    folder = tmp_path / "landing" / "barn"

    def looking_fsync(descriptor: int) -> None:
        if folder_files(folder):
            seen.append((folder_files(folder), store.outbox.rows))
        fsync(descriptor)

    if waited:
        add_rows(store, 1, 2)
        await store.settle()
    monkeypatch.setattr(os, "fsync", looking_fsync)
    monkeypatch.setattr(os, "fdatasync", looking_fsync)
    async with running(store, uplink_settings(directory=tmp_path / "landing")) as uplink:
        await connected(uplink)
        if not waited:
            add_rows(store, 1, 2)
            await until(lambda: store.outbox.rows == 0)
    name, hidden = "00a1b2c3d4.main.1-2.2.jsonl", ".00a1b2c3d4.main.1.jsonl.open"
    if waited:
        assert seen == [([f".{name}.tmp"], 2), ([name], 2)]
    else:
        assert seen == [([hidden], 2), ([hidden], 2), ([name], 0)]
    assert store.outbox.rows == 0


async def test_a_file_that_a_crash_left_open_is_named(store: Store, tmp_path: Path) -> None:
    """Whole lines were promised to publishers, and a torn one at the end was not.

    What the disk has damaged since costs no other line, and stays.
    """
    folder = tmp_path / "landing" / "barn"
    settings = uplink_settings(directory=tmp_path / "landing")
    async with running(store, settings) as uplink:
        await connected(uplink)
        add_rows(store, 1, 3)
        await until(lambda: store.outbox.rows == 0)
        [left] = folder.glob(".*.jsonl.open")
        lines = left.read_bytes()
    assert folder_files(folder) == ["00a1b2c3d4.main.1-3.3.jsonl"]
    (folder / "00a1b2c3d4.main.1-3.3.jsonl").unlink()
    left.write_bytes(lines[:-1])
    (folder / ".00a1b2c3d4.slow.7.jsonl.open").write_bytes(b"7\n" + lines + bytes(9) + b"\n")
    (folder / ".00a1b2c3d4.slow.8.jsonl.open").write_bytes(lines[:20])
    os.mkfifo(folder / ".00a1b2c3d4.slow.9.jsonl.open")
    async with running(store, settings) as uplink:
        await connected(uplink)
        names = folder_files(folder)
    pipe, *names = names
    assert pipe == ".00a1b2c3d4.slow.9.jsonl.open"
    assert names == ["00a1b2c3d4.main.1-2.2.jsonl", "00a1b2c3d4.main.1-3.4.jsonl"]
    assert [record["seq"] for record in _records(folder / names[0])] == [1, 2]
    assert (folder / names[1]).read_bytes() == b"7\n" + lines


def _delete(file: Path) -> None:
    file.unlink()


def _delete_folder(file: Path) -> None:
    shutil.rmtree(file.parent.parent)


def _rename_folder(file: Path) -> None:
    file.parent.rename(tempfile.mkdtemp(dir=file.parent.parent))


def _replace(file: Path) -> None:
    other = file.with_name("other")
    other.write_bytes(b"of somebody else\n")
    other.rename(file)


def _truncate(file: Path) -> None:
    os.truncate(file, 0)


def _link(file: Path) -> None:
    file.unlink()
    file.symlink_to(os.devnull)


@pytest.mark.uncovered
@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize(
    "take", [_delete, _delete_folder, _rename_folder, _replace, _truncate, _link]
)
async def test_what_was_answered_outlives_an_open_file(
    store: Store, tmp_path: Path, take: Callable[[Path], None], at_once: bool
) -> None:
    """Somebody takes it away: the next look or line finds that, or the end of the file."""
    folder = tmp_path / "landing" / "barn"
    async with running(store, uplink_settings(directory=tmp_path / "landing")) as uplink:
        await connected(uplink)
        add_rows(store, 1, 3)
        await until(lambda: store.outbox.rows == 0)
        [file] = folder.glob(".*.jsonl.open")
        lines = file.read_bytes()
        take(file)
        if not at_once:
            await until(lambda: file.exists() and file.read_bytes() == lines)
            take(file)
            add_rows(store, 4, 5)
            await until(lambda: store.outbox.rows == 0)
    records = [record for name in folder_files(folder) for record in _records(folder / name)]
    assert [record["seq"] for record in records] == list(range(1, 4 if at_once else 6))


async def test_a_publisher_is_answered_when_the_line_is_on_disk(
    store: Store, tmp_path: Path
) -> None:
    """No row is written for it, nor for what nobody waits for."""
    async with running(store, uplink_settings(directory=tmp_path / "landing")) as uplink:
        await connected(uplink)
        store.outbox.add(outbox_row(1), None, 60.0)
        await asyncio.sleep(0.05)
        assert store.outbox.rows == 1
        barrier = Barrier()
        store.outbox.add(outbox_row(2), 0.0, 60.0, barrier)
        await until(lambda: not barrier.outstanding)
        [left] = (tmp_path / "landing" / "barn").glob(".*.jsonl.open")
        assert [record["seq"] for record in _records(left)] == [1, 2]
        store.outbox.add(outbox_row(3), None, 60.0)
        await until(lambda: store.outbox.rows == 0)
    assert store.counters.count("tidegate/outbox/unwritten") == 3


async def test_what_comes_with_a_row_is_on_disk_before_it_lands(
    store: Store, tmp_path: Path
) -> None:
    """A packet identifier or the number of a frame; otherwise a crash would make two of it."""
    folder = tmp_path / "landing" / "barn"
    async with running(store, uplink_settings(directory=tmp_path / "landing")) as uplink:
        await connected(uplink)
        store.outbox.add(outbox_row(1))
        store.outbox.add(outbox_row(2), 0.0, 60.0, Barrier())
        await asyncio.sleep(0.7)
        assert not folder_files(folder)
        await store.settle()
        await until(lambda: store.outbox.rows == 0)
    assert folder_files(folder) == ["00a1b2c3d4.main.1-2.2.jsonl"]


@pytest.mark.uncovered
async def test_more_than_fits_into_memory_is_read_from_the_outbox_in_order(
    store: Store, tmp_path: Path
) -> None:
    async with running(store, uplink_settings(directory=tmp_path / "landing")) as uplink:
        await connected(uplink)
        add_rows(store, 1, 1_500)
        add_rows(store, 1, 10, "slow", lane="backlog")
        await until(lambda: store.outbox.rows == 10)
        add_rows(store, 1_501, 1_600)
        await until(lambda: store.outbox.rows == 10)
    folder = tmp_path / "landing" / "barn"
    main = sorted(folder.glob("*.main.*"), key=lambda path: int(_records(path)[0]["seq"]))
    assert [record["seq"] for path in main for record in _records(path)] == list(range(1, 1_601))
    assert [path.name for path in folder.glob("*.slow.*")] == ["00a1b2c3d4.slow.1-10.10.jsonl"]
    assert store.outbox.rows == 0


@pytest.mark.uncovered
async def test_a_crash_before_the_removal_repeats_rows_under_their_numbers(
    store: Store, tmp_path: Path
) -> None:
    add_rows(store, 1, 1_500)
    await store.settle()
    settings = uplink_settings(directory=tmp_path / "landing")
    async with running(store, settings):
        await until(lambda: store.outbox.rows == 500)
        image = crash_image(tmp_path / "data", tmp_path / "crashed")
    again = await open_store(image)
    async with running(again, settings):
        await until(lambda: again.outbox.rows <= 500)
    await again.close()
    folder = tmp_path / "landing" / "barn"
    records = [record for name in folder_files(folder) for record in _records(folder / name)]
    assert {record["seq"] for record in records} == set(range(1, 1_501))
    for name in folder_files(folder):
        assert len(_records(folder / name)) == int(name.split(".")[3])


async def test_a_folder_that_cannot_be_written_is_said_and_tried_again(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reconnect_after(monkeypatch, 0.05)
    landing = tmp_path / "landing"
    landing.write_text("a file where a folder should be")
    add_rows(store, 1, 1)
    async with running(store, uplink_settings(directory=landing)) as uplink:
        await until(lambda: uplink.state == "disconnected")
        assert "landing" in str(store.counters.values["tidegate/uplink/error"])
        landing.unlink()
        await connected(uplink)
        assert store.counters.values["tidegate/uplink/error"] == ""
        await until(lambda: store.outbox.rows == 0)


async def test_paused_rows_stay_in_the_outbox(store: Store, tmp_path: Path) -> None:
    uplink = make_uplink(store, uplink_settings(directory=tmp_path / "landing"))
    uplink.pause()
    await uplink.start()
    add_rows(store, 1, 3)
    await store.settle()
    await asyncio.sleep(0.05)
    states = [uplink.state]
    assert store.outbox.rows == 3
    assert folder_files(tmp_path / "landing") == []
    uplink.resume()
    await connected(uplink)
    uplink.pause()  # what is under way lands, as at a stop
    await until(lambda: uplink.state == "paused")
    await uplink.close()
    states.append(uplink.state)
    assert (states, store.outbox.rows) == (["paused", "off"], 0)


async def test_a_line_that_cannot_be_synced_is_promised_to_nobody(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reconnect_after(monkeypatch, 0.05)
    fdatasync = os.fdatasync
    broken: list[int] = []

    def breaking_fdatasync(descriptor: int) -> None:
        if len(broken) == 1:
            broken.append(store.outbox.rows)
            raise OSError(errno.ENOSPC, "No space left on device")
        broken.append(store.outbox.rows)
        fdatasync(descriptor)

    monkeypatch.setattr("gateway.uplink.landing.file.os.fdatasync", breaking_fdatasync)
    async with running(store, uplink_settings(directory=tmp_path / "landing")) as uplink:
        await connected(uplink)
        store.outbox.add(outbox_row(1), 0.0, 60.0, Barrier())
        await until(lambda: len(broken) == 1)
        store.outbox.add(outbox_row(2), 0.0, 60.0, Barrier())
        await until(lambda: store.outbox.rows == 0)
    assert broken[:2] == [1, 1]
    folder = tmp_path / "landing" / "barn"
    landed = [record["seq"] for name in folder_files(folder) for record in _records(folder / name)]
    assert set(landed) == {1, 2}
    assert all(not name.startswith(".") for name in folder_files(folder))
