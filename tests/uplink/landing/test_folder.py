"""The landing folder's bounds: what is deleted, in which order, and what waits."""

import os
from pathlib import Path
from time import time

import pytest

from gateway.settings.uplink import UplinkSettings
from gateway.uplink.errors import LinkError
from gateway.uplink.landing.folder import SCAN_SECONDS, LandingFolder
from tests.support.disk.storage import Store, until
from tests.support.fleet.uplinks import add_rows, folder_files, running, uplink_settings

HOUR = 3_600.0
YEAR = 365 * 24 * HOUR

BLOCKS = 8_192
"""What each file of the tests takes of the disk."""


def _land(folder: Path, name: str, age: float) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bytes(BLOCKS))
    os.utime(path, (time() - age, time() - age))
    return path


def _there(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*.jsonl"))


def test_the_oldest_files_make_room_and_a_tail_stays(tmp_path: Path) -> None:
    for number in range(10):
        _land(tmp_path, f"e.main.{number}.jsonl", 100 - number)
    _land(tmp_path, "ledger/e.1.jsonl", 200)
    _land(tmp_path, "keep.txt", 500)
    landing = LandingFolder(tmp_path, UplinkSettings(landing_maximum_bytes=10 * BLOCKS))
    landing.delete_oldest(1.0, time())
    assert _there(tmp_path) == [f"e.main.{number}.jsonl" for number in range(1, 10)]
    assert (landing.deleted, landing.bytes) == (2, 9 * BLOCKS)
    landing.wrote(_land(tmp_path, "e.main.10.jsonl", 0))
    landing.delete_oldest(2.0, time())
    assert landing.deleted == 2, "there is just room"
    landing.wrote(_land(tmp_path, "e.main.11.jsonl", 0))
    landing.delete_oldest(3.0, time())
    assert landing.deleted == 4
    assert (tmp_path / "keep.txt").exists()


def test_old_files_go_whatever_the_policy(tmp_path: Path) -> None:
    _land(tmp_path, "e.main.1.jsonl", 3_700)
    _land(tmp_path, "clock/e.1.jsonl", 3_700)
    _land(tmp_path, "e.main.2.jsonl", 3_500)
    landing = LandingFolder(
        tmp_path, UplinkSettings(landing_maximum_age=3_600, landing_when_full="wait")
    )
    landing.delete_oldest(1.0, time())
    assert _there(tmp_path) == ["e.main.2.jsonl"]
    os.utime(tmp_path / "e.main.2.jsonl", (0, 0))
    landing.delete_oldest(SCAN_SECONDS, time())
    assert _there(tmp_path) == ["e.main.2.jsonl"], "it is not counted all the time"
    landing.delete_oldest(SCAN_SECONDS + 1, time())
    assert _there(tmp_path) == []


@pytest.mark.parametrize("step", [10 * YEAR, -10 * YEAR, 56 * YEAR])
def test_a_step_of_the_clock_makes_no_file_older_or_younger(tmp_path: Path, step: float) -> None:
    """Set while the gateway runs; what an earlier start has written by another clock stays."""
    before = time() - step
    landing = LandingFolder(tmp_path, UplinkSettings(landing_maximum_age=3_600))
    landing.delete_oldest(0.0, before)
    written = _land(tmp_path, "e.main.1.jsonl", 0)
    os.utime(written, (before, before))
    earlier = _land(tmp_path, "d.main.1.jsonl", -HOUR if step > 0 else 10.0)
    landing.delete_oldest(60.0, time() + 60)
    landing.wrote(_land(tmp_path, "e.main.2.jsonl", -120))
    landing.delete_oldest(3_000.0, time() + 3_000)
    assert _there(tmp_path) == ["d.main.1.jsonl", "e.main.1.jsonl", "e.main.2.jsonl"]
    landing.delete_oldest(3_700.0, time() + 3_700)
    assert not written.exists()
    assert earlier.exists() == (step > 0)


def test_with_wait_nothing_is_deleted(tmp_path: Path) -> None:
    paths = [_land(tmp_path, f"e.main.{number}.jsonl", 1) for number in range(2)]
    bounds = UplinkSettings(landing_maximum_bytes=BLOCKS, landing_when_full="wait")
    landing = LandingFolder(tmp_path, bounds)
    with pytest.raises(LinkError, match=f"holds {2 * BLOCKS} bytes, and landing_maximum_bytes"):
        landing.delete_oldest(1.0, time())
    paths[0].unlink()
    landing.delete_oldest(2.0, time())
    assert landing.deleted == 0


async def test_a_full_folder_leaves_messages_in_the_outbox(store: Store, tmp_path: Path) -> None:
    folder = tmp_path / "landing" / "barn"
    path = _land(folder, "e.main.1.jsonl", 1)
    settings = uplink_settings(
        directory=tmp_path / "landing", landing_maximum_bytes=BLOCKS // 2, landing_when_full="wait"
    )
    add_rows(store, 1, 3)
    await store.settle()
    async with running(store, settings) as uplink:
        await until(lambda: uplink.state == "disconnected")
        error = str(store.counters.values["tidegate/uplink/error"])
        assert "it waits until files are removed" in error
        assert store.outbox.rows == 3
        path.unlink()
        uplink.resume()
        await until(lambda: uplink.state == "connected")
    assert folder_files(folder) == ["00a1b2c3d4.main.1-3.3.jsonl"]
    assert store.counters.values["tidegate/uplink/landing_deleted"] == 0


async def test_deleted_files_are_counted_and_said(
    store: Store, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "landing" / "barn"
    _land(folder, "e.main.1.jsonl", 1)
    settings = uplink_settings(directory=tmp_path / "landing", landing_maximum_bytes=BLOCKS // 2)
    add_rows(store, 1, 3)
    await store.settle()
    async with running(store, settings):
        await until(lambda: "tidegate/uplink/landing_deleted" in store.counters.values)
        await until(lambda: store.counters.count("tidegate/uplink/landing_deleted") == 1)
    assert folder_files(folder) == ["00a1b2c3d4.main.1-3.3.jsonl"]
    assert "1 landing files were deleted" in caplog.text


def _refuse(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    unlink = os.unlink

    def refusing(path: str | Path) -> None:
        if Path(path).name in names:
            raise PermissionError(1, "Operation not permitted", str(path))
        unlink(path)

    monkeypatch.setattr(os, "unlink", refusing)


def test_a_file_that_cannot_be_deleted_hinders_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    names = [f"e.main.{number}.jsonl" for number in range(4)]
    for number, name in enumerate(names):
        _land(tmp_path, name, 100 - number)
    _refuse(monkeypatch, names[0])
    landing = LandingFolder(tmp_path, UplinkSettings(landing_maximum_bytes=3 * BLOCKS))
    landing.delete_oldest(1.0, time())
    assert _there(tmp_path) == [names[0], names[3]]
    assert f"{names[0]} cannot be deleted" in caplog.text


def test_a_bound_holds_where_nothing_can_be_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(2):
        _land(tmp_path, f"e.main.{number}.jsonl", 0)
    _refuse(monkeypatch, "e.main.0.jsonl", "e.main.1.jsonl")
    landing = LandingFolder(tmp_path, UplinkSettings(landing_maximum_bytes=BLOCKS))
    with pytest.raises(LinkError, match="no file of it can be deleted"):
        landing.delete_oldest(1.0, time())


def test_a_file_whose_reader_was_quicker_is_no_error(tmp_path: Path) -> None:
    landing = LandingFolder(tmp_path, UplinkSettings())
    landing.wrote(tmp_path / "e.main.1-1.1.jsonl")
    assert landing.bytes == 0
