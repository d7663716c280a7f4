import os
import socket
import stat
from pathlib import Path

import pytest

from gateway.errors import StartError
from gateway.server.listening.unix_socket import bind_unix_socket, remove_unix_socket


@pytest.mark.parametrize("mode", [0o600, 0o660, 0o666])
def test_the_permissions_are_the_ones_asked_for(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "socket"
    listening = bind_unix_socket(path, mode, 5)
    assert stat.S_IMODE(path.stat().st_mode) == mode
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
    remove_unix_socket(path, listening)
    assert not path.exists()


def test_what_a_dead_process_left_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    bind_unix_socket(path, 0o600, 5).close()
    assert path.is_socket()
    remove_unix_socket(path, bind_unix_socket(path, 0o600, 5))


def test_a_socket_at_which_somebody_listens_stays(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    listening = bind_unix_socket(path, 0o600, 0)
    with pytest.raises(StartError, match="another process listens there"):
        bind_unix_socket(path, 0o600, 5)
    remove_unix_socket(path, listening)


def test_a_listener_that_is_too_busy_to_answer_is_there_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.server.listening.unix_socket.PROBE_TIMEOUT", 0.05)
    path = tmp_path / "socket"
    listening = bind_unix_socket(path, 0o600, 0)
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))  # the whole backlog
        with pytest.raises(StartError, match="another process listens there"):
            bind_unix_socket(path, 0o600, 5)
    remove_unix_socket(path, listening)


@pytest.mark.parametrize("kind", ["file", "folder", "link"])
def test_what_is_no_socket_stays(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "precious"
    if kind == "file":
        path.write_text("precious")
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StartError, match=f"cannot listen on {path}: .* no socket"):
        bind_unix_socket(path, 0o600, 5)
    assert path.is_symlink() or path.exists()


def test_a_folder_that_is_not_there_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        bind_unix_socket(tmp_path / "none" / "socket", 0o600, 5)


def test_a_successor_s_socket_is_not_removed(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    first = bind_unix_socket(path, 0o600, 5)
    path.unlink()
    second = bind_unix_socket(path, 0o600, 5)
    remove_unix_socket(path, first)
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
    remove_unix_socket(path, second)


def test_removing_what_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    listening = bind_unix_socket(path, 0o600, 5)
    os.unlink(path)  # noqa: PTH108 - as a cleaner of /run does
    remove_unix_socket(path, listening)
    assert not path.exists()
