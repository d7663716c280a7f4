import os
import time
from pathlib import Path

import pytest

from pipeline.errors import PipelineError
from pipeline.landing.listing import SETTLED_SECONDS, Listing, kind, list_landing
from pipeline.place import place_of


def touch(path: Path, content: str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


def test_a_missing_or_empty_folder_has_no_files(tmp_path: Path) -> None:
    assert list_landing(place_of(tmp_path)) == Listing()
    assert list_landing(place_of(tmp_path / "missing" / "landing")) == Listing()


def test_files_are_listed_by_name_with_their_size(tmp_path: Path) -> None:
    touch(tmp_path / "shed" / "b.jsonl", "12")
    touch(tmp_path / "barn" / "b.jsonl", "1")
    touch(tmp_path / "barn" / "a.jsonl")
    touch(tmp_path / "stray.jsonl", "123")
    listing = list_landing(place_of(tmp_path))
    assert [(name, mark.size) for name, mark in listing.files.items()] == [
        ("barn/a.jsonl", 0),
        ("barn/b.jsonl", 1),
        ("shed/b.jsonl", 2),
        ("stray.jsonl", 3),
    ]
    assert listing.left == {}
    assert listing.files["stray.jsonl"].mtime == (tmp_path / "stray.jsonl").stat().st_mtime_ns


def test_what_a_gateway_says_of_itself_is_listed_too(tmp_path: Path) -> None:
    for name in ("barn/ledger/a.jsonl", "barn/clock/a.jsonl", "20251121/c-1.parquet"):
        touch(tmp_path / name)
    (tmp_path / "barn" / "ledger" / "x.jsonl").mkdir()
    touch(tmp_path / "barn" / "ledger" / ".a.jsonl")
    listing = list_landing(place_of(tmp_path))
    assert {name: kind(name) for name in listing.files} == {
        "20251121/c-1.parquet": "records",
        "barn/clock/a.jsonl": "clock",
        "barn/ledger/a.jsonl": "ledger",
    }
    assert listing.left == {"barn/ledger/x.jsonl": "a folder deeper than a gateway's"}


def test_a_folder_that_settled_is_not_listed_before_it_changes(tmp_path: Path) -> None:
    names = ("20251121/c-1.parquet", "barn/a.jsonl", "barn/ledger/a.jsonl", "shed/a.jsonl")
    for name in names:
        touch(tmp_path / name)
    touch(tmp_path / "shed" / "notes.txt")
    old = time.time() - 2 * SETTLED_SECONDS
    for path in tmp_path.rglob("*"):
        os.utime(path, (old, old))
    os.utime(tmp_path / "barn" / "a.jsonl")  # it may still be being copied
    first = list_landing(place_of(tmp_path))
    assert sorted(first.files) == sorted(names)
    assert sorted(first.settled) == ["20251121/", "barn/ledger/"]
    changed = list_landing(place_of(tmp_path), first.settled)
    assert sorted(changed.files) == ["barn/a.jsonl", "shed/a.jsonl"]
    touch(tmp_path / "20251121" / "c-2.parquet")
    again = list_landing(place_of(tmp_path), first.settled)
    assert sorted(again.files) == sorted({*names, "20251121/c-2.parquet"} - {"barn/ledger/a.jsonl"})
    assert again.left == {"shed/notes.txt": "its name does not end in .jsonl or .parquet"}


def test_work_in_hand_is_not_seen(tmp_path: Path) -> None:
    touch(tmp_path / "barn" / ".a.jsonl.tmp")
    touch(tmp_path / "barn" / ".a.jsonl")
    touch(tmp_path / "barn" / "_a.jsonl")
    touch(tmp_path / ".hidden" / "a.jsonl")
    touch(tmp_path / "_hidden" / "a.jsonl")
    assert list_landing(place_of(tmp_path)) == Listing()


def test_a_gateway_may_be_called_ledger(tmp_path: Path) -> None:
    touch(tmp_path / "ledger" / "a.jsonl")
    assert list(list_landing(place_of(tmp_path)).files) == ["ledger/a.jsonl"]


def test_what_is_left_has_a_reason(tmp_path: Path) -> None:
    touch(tmp_path / "barn" / "deep" / "a.jsonl")
    touch(tmp_path / "barn" / "a.jsonl.gz")
    touch(tmp_path / "barn" / "ledger")
    (tmp_path / "barn" / "dangling.jsonl").symlink_to(tmp_path / "nowhere")
    (tmp_path / "barn" / "endless.jsonl").symlink_to("endless.jsonl")
    (tmp_path / "endless").symlink_to("endless")
    os.mkfifo(tmp_path / "barn" / "pipe.jsonl")
    touch(Path(os.fsdecode(os.fsencode(tmp_path) + b"/barn/\xff.jsonl")))
    listing = list_landing(place_of(tmp_path))
    assert listing.files == {}
    assert listing.left == {
        "barn/deep": "a folder deeper than a gateway's",
        "barn/a.jsonl.gz": "its name does not end in .jsonl or .parquet",
        "barn/ledger": "its name does not end in .jsonl or .parquet",
        "barn/dangling.jsonl": "not a regular file",
        "barn/endless.jsonl": "not a regular file",
        "endless": "its name does not end in .jsonl or .parquet",
        "barn/pipe.jsonl": "not a regular file",
        "barn/\udcff.jsonl": "its name is not UTF-8",
    }


def test_a_file_that_may_not_be_read_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    touch(tmp_path / "barn" / "a.jsonl")
    (tmp_path / "barn" / "a.jsonl").chmod(0o600)
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may read any file
    assert list_landing(place_of(tmp_path)).left == {"barn/a.jsonl": "no permission to read it"}


def test_a_file_that_is_moved_away_meanwhile_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "barn" / "gone.jsonl"
    touch(tmp_path / "barn" / "b.jsonl")
    touch(gone)
    listdir = os.listdir

    def moving(folder: Path) -> list[str]:
        names = listdir(folder)
        if folder == gone.parent:
            gone.unlink()
        return names

    monkeypatch.setattr(os, "listdir", moving)
    assert list(list_landing(place_of(tmp_path)).files) == ["barn/b.jsonl"]
    assert not gone.exists()


def test_links_are_followed(tmp_path: Path) -> None:
    touch(tmp_path / "disk" / "a.jsonl", "1")
    (tmp_path / "landing").mkdir()
    (tmp_path / "landing" / "barn").symlink_to(tmp_path / "disk")
    assert list_landing(place_of(tmp_path / "landing")).files["barn/a.jsonl"].size == 1


def test_a_file_is_no_landing_folder(tmp_path: Path) -> None:
    touch(tmp_path / "landing")
    with pytest.raises(PipelineError, match="landing is a file, not a folder"):
        list_landing(place_of(tmp_path / "landing"))
    with pytest.raises(PipelineError, match="below is a file"):
        list_landing(place_of(tmp_path / "landing" / "below"))


def test_a_folder_that_cannot_be_read_stops_the_run(tmp_path: Path) -> None:
    (tmp_path / "landing").symlink_to(tmp_path / "landing")
    with pytest.raises(PipelineError, match=r"cannot read landing folder .*: Too many levels"):
        list_landing(place_of(tmp_path / "landing"))
