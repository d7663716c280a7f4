import os
import resource
from pathlib import Path

import pytest

from gateway.cli.user_actions import set_password
from gateway.errors import TidegateError
from gateway.server.passwords.file import load


def test_others_change_the_file_while_somebody_is_asked(tmp_path: Path) -> None:
    users = tmp_path / "users"

    def ask() -> bytes:
        set_password(users, "bob", lambda: b"b", new=True)
        return b"a"

    set_password(users, "anna", ask, new=True)
    found = load(users)
    assert found.check("anna", b"a")
    assert found.check("bob", b"b")


def test_who_was_added_meanwhile_is_not_added_again(tmp_path: Path) -> None:
    users = tmp_path / "users"

    def ask() -> bytes:
        set_password(users, "anna", lambda: b"first", new=True)
        return b"second"

    with pytest.raises(TidegateError, match="has a user 'anna' already"):
        set_password(users, "anna", ask, new=True)
    assert load(users).check("anna", b"first")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to other groups")
def test_a_new_file_has_the_group_of_its_folder(tmp_path: Path) -> None:
    os.chown(tmp_path, -1, 4711)
    users = tmp_path / "users"
    set_password(users, "anna", lambda: b"a", new=True)
    assert (users.stat().st_uid, users.stat().st_gid) == (0, 4711)
    os.chown(users, 4712, 4713)
    set_password(users, "bob", lambda: b"b", new=True)
    assert (users.stat().st_uid, users.stat().st_gid) == (4712, 4713)


def test_a_file_that_cannot_be_written_leaves_all_as_it_was(tmp_path: Path) -> None:
    users = tmp_path / "users"
    set_password(users, "anna", lambda: b"a", new=True)
    before = users.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, limits[1]))
    try:
        with pytest.raises(TidegateError, match="File too large; nothing was changed"):
            set_password(users, "bob", lambda: b"b", new=True)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert users.read_bytes() == before
    assert list(tmp_path.iterdir()) == [users]


@pytest.mark.uncovered
@pytest.mark.parametrize("ending", [b"\n", b"\r\n", b""])
def test_all_other_lines_stay(tmp_path: Path, ending: bytes) -> None:
    users = tmp_path / "users"
    set_password(users, "anna", lambda: b"a", new=True)
    anna = users.read_bytes().rstrip()
    rest = [b"# anna: not this one", b" bob : " + anna.partition(b":")[2], b"", anna]
    users.write_bytes((ending or b"\n").join(rest) + ending)
    before = users.read_bytes().split(b"\n")
    set_password(users, "bob", lambda: b"new", new=False)
    set_password(users, "carl", lambda: b"c", new=True)
    after = users.read_bytes().split(b"\n")
    assert [before[0], before[2], before[3]] == [after[0], after[2], after[3]]
    assert after[1].startswith(b"bob:$scrypt$")
    assert after[4].startswith(b"carl:$scrypt$")
    assert after[5:] == [b""]
    assert len(load(users)) == 3


def test_a_user_behind_a_byte_order_mark_has_one_line(tmp_path: Path) -> None:
    users = tmp_path / "users"
    set_password(users, "anna", lambda: b"a", new=True)
    users.write_bytes(b"\xef\xbb\xbf" + users.read_bytes())
    set_password(users, "anna", lambda: b"b", new=False)
    assert load(users).check("anna", b"b")
    assert users.read_bytes().count(b"anna:") == 1
