import logging
import os
from itertools import pairwise
from pathlib import Path

import pytest

from gateway.app.watched_files import (
    IN_PLACE,
    STILL,
    UNFINISHED,
    WARN_AFTER,
    WatchedFiles,
    snapshot,
    watched,
)
from gateway.config.configuration import Configuration
from gateway.settings.listener import ListenerSettings


def test_each_file_of_the_listeners_is_watched_once() -> None:
    listeners = (
        ListenerSettings(password_file="users", acl_file="acl"),
        ListenerSettings(acl_file="acl", tls_certificate="pem", client_ca="ca"),
    )
    files = [str(path) for path in watched(Configuration("file", "id", listeners=listeners))]
    assert files == ["users", "acl", "pem", "ca"]
    assert not watched(Configuration("file", "id"))


def test_every_change_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "users"
    seen = [snapshot([path])]
    path.write_text("a")
    seen.append(snapshot([path]))
    path.write_text("ab")
    seen.append(snapshot([path]))
    assert snapshot([path]) == seen[-1]
    path.rename(tmp_path / "other")
    path.write_text("ab")
    seen.append(snapshot([path]))
    path.unlink()
    assert snapshot([path]) == seen[0] == [None]
    assert all(before != after for before, after in pairwise(seen))


def write(path: Path, text: str) -> None:
    """Write a file in its place, so that nothing has changed it since its last byte."""
    path.write_text(text)
    status = path.stat()
    while path.stat().st_ctime_ns > path.stat().st_mtime_ns:
        path.write_text(text)
    assert status.st_size == len(text)


def move(path: Path, text: str) -> None:
    """Move a file to its place whose last byte was written before."""
    new = path.with_name("new")
    new.write_text(text)
    os.utime(new, (1, 1))
    new.replace(path)


CASES = [
    (write, "topic a\n", STILL),
    (write, "topic a", UNFINISHED),
    (write, "", UNFINISHED),
    (move, "topic a\n", IN_PLACE),
    (move, "topic a", UNFINISHED),
]


@pytest.mark.parametrize(("put", "text", "wait"), CASES)
def test_a_file_is_read_once_it_is_whole(
    tmp_path: Path, put: object, text: str, wait: float
) -> None:
    path = tmp_path / "acl"
    write(path, "topic b\n")
    files = WatchedFiles([path], 0.0)
    assert callable(put)
    put(path, text)
    assert not files.changed(1.0)
    assert not files.changed(0.9 + wait)
    assert files.changed(1.0 + wait) == [path]
    assert not files.changed(100.0)


def test_each_change_begins_the_wait_anew(tmp_path: Path) -> None:
    path = tmp_path / "acl"
    write(path, "topic b\n")
    files = WatchedFiles([path], 0.0)
    for second in range(1, 20, 3):
        write(path, "topic a\n" * second)
        assert not files.changed(float(second))
        assert not files.changed(second + 2.0)
    write(path, "topic b\n" * 2)
    assert not files.changed(30.0)
    assert files.changed(30.0 + STILL) == [path]


def test_no_file_is_read_while_another_is_written(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    acl, users = tmp_path / "acl", tmp_path / "users"
    files = WatchedFiles([acl, users], 0.0)
    write(acl, "topic b\n")
    for second in range(1, 1 + int(WARN_AFTER) + 3):
        write(users, "#" * second)
        assert not files.changed(float(second))
    (warning,) = [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]
    assert "not read, since it changes all the time" in warning
    assert "users" in warning
    assert files.changed(200.0) == [acl, users]


def test_a_file_that_has_gone_is_read_too(tmp_path: Path) -> None:
    """Which says why it cannot be, and keeps what was there."""
    path = tmp_path / "acl"
    write(path, "topic b\n")
    files = WatchedFiles([path], 0.0)
    path.unlink()
    assert not files.changed(1.0)
    assert files.changed(1.0 + STILL) == [path]
    path.mkdir()
    assert not files.changed(10.0)
    assert files.changed(10.0 + STILL) == [path]


def test_whoever_asks_has_them_read_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "acl"
    files = WatchedFiles([path], 0.0)
    write(path, "")
    files.note_read()
    assert not files.changed(100.0)
