import errno
import fcntl
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.app.disk.data_folder import DataFolder
from gateway.errors import StartError


def test_the_folder_is_made_and_says_who_uses_it(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b"
    folder = DataFolder(path)
    assert (path / "lock").read_text() == f"{os.getpid()}\n"
    assert stat.S_IMODE((path / "lock").stat().st_mode) & stat.S_IWOTH == 0
    folder.close()


def test_a_folder_in_use_is_refused_and_its_user_named(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    with pytest.raises(StartError) as raised:
        DataFolder(tmp_path)
    expected = f"{tmp_path} is in use by process {os.getpid()}: each gateway needs its own"
    assert str(raised.value) == expected
    folder.close()
    DataFolder(tmp_path).close()


def test_a_lock_that_was_left_behind_does_no_harm(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text("1234567890123456789\n")
    folder = DataFolder(tmp_path)
    assert (tmp_path / "lock").read_text() == f"{os.getpid()}\n"
    folder.close()


def test_a_lock_file_that_is_deleted_lets_nobody_in(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    (tmp_path / "lock").unlink()
    with pytest.raises(StartError, match="is in use: each gateway"):
        DataFolder(tmp_path)
    folder.close()


def make_hard_link(database: Path, other: Path) -> None:
    other.hardlink_to(database)


def make_symbolic_link(database: Path, other: Path) -> None:
    other.symlink_to(database)


@pytest.mark.parametrize("link", [make_hard_link, make_symbolic_link])
@pytest.mark.parametrize("made_later", [False, True])
def test_a_database_under_another_name_lets_nobody_in(
    tmp_path: Path, link: Callable[[Path, Path], None], made_later: bool
) -> None:
    """Two gateways would write a log each, and bring both into one file."""
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.mkdir()
    if not made_later:
        (one / "tidegate.db").touch()
    folder = DataFolder(one)
    (one / "tidegate.db").touch()
    folder.hold()
    link(one / "tidegate.db", other / "tidegate.db")
    with pytest.raises(StartError, match=r"other/tidegate.db is in use"):
        DataFolder(other)
    folder.close()
    DataFolder(other).close()


@pytest.mark.parametrize("error", [errno.EIO, errno.ENOLCK, errno.EACCES])
def test_a_lock_that_the_disk_refuses_is_not_somebody_else_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    def refuse(descriptor: int, operation: int) -> None:
        raise OSError(error, os.strerror(error))

    (tmp_path / "lock").write_text("1234\n")
    with monkeypatch.context() as patched:
        patched.setattr(fcntl, "flock", refuse)
        with pytest.raises(StartError) as raised:
            DataFolder(tmp_path)
    assert str(raised.value).startswith(f"{tmp_path}: {os.strerror(error)}; choose another")
    DataFolder(tmp_path).close()


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_a_lock_that_is_no_file_does_no_harm(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "lock")
    folder = DataFolder(tmp_path)
    with pytest.raises(StartError, match="is in use: each gateway"):
        DataFolder(tmp_path)
    folder.close()


def test_others_may_read_nothing(tmp_path: Path) -> None:
    names = ["tidegate.db", "tidegate.db-wal", "tidegate.db.corrupt-20251121T154640Z"]
    for name in names:
        (tmp_path / name).touch()
    (tmp_path / "of somebody").touch()
    (tmp_path / "landing").mkdir()
    for each in tmp_path.iterdir():
        each.chmod(0o755)
    DataFolder(tmp_path).close()
    for name in (*names, "landing", "lock"):
        assert not (tmp_path / name).stat().st_mode & stat.S_IRWXO, name
    assert (tmp_path / "of somebody").stat().st_mode & stat.S_IROTH


def test_the_names_of_folders_are_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    fsync = os.fsync

    def note(descriptor: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", note)
    DataFolder(tmp_path / "a" / "b").close()
    assert {str(tmp_path / "a"), str(tmp_path)} <= set(synced)


def test_a_user_who_has_not_signed_yet(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    (tmp_path / "lock").write_text("")
    with pytest.raises(StartError, match="is in use: each gateway"):
        DataFolder(tmp_path)
    folder.close()


def test_a_path_that_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StartError, match="file: File exists"):
        DataFolder(tmp_path / "file")
    with pytest.raises(StartError, match="Not a directory"):
        DataFolder(tmp_path / "file" / "below")
