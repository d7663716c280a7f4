from itertools import pairwise
from pathlib import Path

from gateway.app.watched_files import look, watched
from gateway.config.settings import Configuration, ListenerConfig


def test_each_file_of_the_listeners_is_watched_once() -> None:
    listeners = (
        ListenerConfig(password_file="users", acl_file="acl"),
        ListenerConfig(acl_file="acl", tls_certificate="pem", client_ca="ca"),
    )
    files = [str(path) for path in watched(Configuration("file", "id", listeners=listeners))]
    assert files == ["users", "acl", "pem", "ca"]
    assert not watched(Configuration("file", "id"))


def test_every_change_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "users"
    seen = [look([path])]
    path.write_text("a")
    seen.append(look([path]))
    path.write_text("ab")
    seen.append(look([path]))
    assert look([path]) == seen[-1]
    path.rename(tmp_path / "other")
    path.write_text("ab")
    seen.append(look([path]))
    path.unlink()
    assert look([path]) == seen[0] == [None]
    assert all(before != after for before, after in pairwise(seen))
