"""`tidegate user`, as somebody would use it."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.server.passwords.file import load
from tests.cli.conftest import Command
from tests.support.processes.gateway_process import COMMAND, tidegate
from tests.support.waiting import SECONDS

CONFIG = """
[gateway]
id = "barn"
[[listener]]
password_file = "users"
acl_file = "acl"
[[listener]]
host = "0.0.0.0"
port = 1884
allow_anonymous = true
[access]
operators = ["olga"]
"""

ACL = "topic read open\nuser anna\ntopic readwrite a/#\ntopic deny a/b\npattern read c/%c\n"


@pytest.fixture(autouse=True)
def config(tmp_path: Path) -> None:
    (tmp_path / "gateway.toml").write_text(CONFIG)
    (tmp_path / "acl").write_text(ACL)


def user(folder: Path, *arguments: str, password: str = "") -> "subprocess.CompletedProcess[str]":
    return tidegate("user", *arguments, folder=folder, stdin=password)


HERE = ("--config", "gateway.toml")


@pytest.mark.uncovered
def test_users_come_and_change(tmp_path: Path) -> None:
    users = tmp_path / "users"
    done = user(tmp_path, "add", "anna", *HERE, password="secret\n")
    assert (done.returncode, done.stdout) == (0, "users: anna added\n"), done.stderr
    assert users.stat().st_mode & 0o777 == 0o640
    assert load(users).check("anna", b"secret")
    users.write_text(f"# mine\n{users.read_text().rstrip()}")
    users.chmod(0o600)
    assert user(tmp_path, "add", "bob", *HERE, password="b").returncode == 0
    done = user(tmp_path, "passwd", "anna", *HERE, password="new\nmore")
    assert done.stdout == "users: anna has a new password\n"
    assert users.read_text().startswith("# mine\nanna:$scrypt$ln=14,r=8,p=1$")
    assert users.stat().st_mode & 0o777 == 0o600
    found = load(users)
    assert found.check("anna", b"new")
    assert found.check("bob", b"b")
    done = user(tmp_path, "list", "--file", "users")
    assert done.stdout == "anna  (scrypt, N = 2^14)\nbob  (scrypt, N = 2^14)\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["acl", "gateway.toml", "users"]


MISTAKES = [
    (("add", "anna"), "x", "users has a user 'anna' already; passwd changes it"),
    (("passwd", "bob"), "x", "users has no user 'bob'"),
    (("add", "bob"), "\n", "a password has 1 to 65535 bytes; nothing was changed"),
    (("add", "bob", "--file", "no/users"), "x", "no: No such file or directory"),
    (("list", "--file", "none"), "", "none: No such file or directory"),
    (("list", "--config", "empty.toml"), "", "empty.toml names no password_file; say which"),
    (("add", "a:b"), "x", "'a:b' is no user name: 1 or more characters without :"),
    (("add", "#a"), "x", "'#a' is no user name"),
    (("check", "anna", "a/#"), "", "topic name 'a/#' holds a wildcard"),
    (("check", "anna", "$delay/a"), "", "topic name '$delay/a' is not $delay/<seconds, 1 to"),
    (("check", "anna", "$delay/1/$CONTROL/tidegate/uplink"), "", "/<topic without $>"),
    (("add", "ü" * 32_768), "x", "of at most 65535 bytes"),
]


@pytest.mark.uncovered
def test_mistakes_are_named_and_change_nothing(tmp_path: Path) -> None:
    (tmp_path / "empty.toml").write_text("[gateway]\nid = 'a'\n")
    assert user(tmp_path, "add", "anna", *HERE, password="secret").returncode == 0
    before = (tmp_path / "users").read_bytes()
    for arguments, password, text in MISTAKES:
        config = () if "--config" in arguments else HERE
        done = user(tmp_path, *arguments, *config, password=password)
        assert (done.returncode, done.stdout) == (2, ""), arguments
        assert text in done.stderr
        assert done.stderr.count("\n") == 1, done.stderr
    assert (tmp_path / "users").read_bytes() == before


def test_what_a_user_may_do(tmp_path: Path) -> None:
    assert user(tmp_path, "add", "anna", *HERE, password="secret").returncode == 0
    said = {
        who: user(tmp_path, "check", *who, *HERE).stdout
        for who in (
            ("anna", "a/b"),
            ("bob", "c/x", "--client-id", "x"),
            ("", "open"),
            ("olga", "$CONTROL/tidegate/uplink"),
            ("anna", "$delay/5/a/c"),
        )
    }
    other = "listener 0.0.0.0:1884\n"
    everything = "  read:  yes\n  write: yes\n  no rules: every topic is open\n"
    assert said["anna", "a/b"] == (
        "listener 127.0.0.1:1883\n"
        "  read:  no\n"
        "  write: no\n"
        "  line 4: topic deny a/b\n"
        "  line 3: topic readwrite a/#\n" + other + everything
    )
    assert said["bob", "c/x", "--client-id", "x"] == (
        "listener 127.0.0.1:1883\n"
        "  users has no user 'bob'\n"
        "  read:  yes\n"
        "  write: no\n"
        "  line 5: pattern read c/%c\n" + other + everything
    )
    assert "  read:  yes\n  write: no\n  line 1: topic read open\n" in said["", "open"]
    assert (
        "  read:  no\n  write: yes\n  line 3: topic readwrite a/#\n"
        in (said["anna", "$delay/5/a/c"])
    )
    olga = said["olga", "$CONTROL/tidegate/uplink"]
    assert [line for line in olga.splitlines() if "write:" in line] == [
        "  write: yes",
        "  write: no",
    ]


def answer(terminal: int, prompt: bytes, line: bytes) -> None:
    """Type a line once the prompt is there."""
    shown = b""
    while not shown.endswith(prompt):
        shown += os.read(terminal, 1000)
    os.write(terminal, line)


@pytest.mark.uncovered
def test_a_terminal_is_asked_twice(tmp_path: Path) -> None:
    for again, status in ((b"other\n", 2), (b"secret\n", 0)):
        ours, theirs = pty.openpty()
        with subprocess.Popen(
            [str(COMMAND), "user", "add", "anna", *HERE],
            cwd=tmp_path,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        ) as process:
            answer(ours, b"Password: ", b"secret\n")
            answer(ours, b"Again: ", again)
            assert process.wait(SECONDS) == status
        said = os.read(ours, 1000)
        assert (b"the two passwords differ" in said) == (status == 2), said
        assert b"secret" not in said
        for end in (ours, theirs):
            os.close(end)
    assert load(tmp_path / "users").check("anna", b"secret")


@pytest.mark.uncovered
def test_help_names_the_actions(tidegate: Command) -> None:
    done = tidegate("user", "--help")
    assert done.returncode == 0, sys.executable
    assert all(word in done.stdout for word in ("add", "passwd", "list", "check"))
