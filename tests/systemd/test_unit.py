import subprocess
import sys
from pathlib import Path

import pytest

from gateway.cli.operate import RESTART_NEEDED
from gateway.errors import CANNOT_START
from tests.support.requirements import find_program

SYSTEMD = Path(__file__).parents[2] / "systemd"
UNIT = (SYSTEMD / "tidegate.service").read_text()
COMMAND = Path(sys.executable).with_name("tidegate")

EXPOSURE = 22
"""Tenths of the exposure level that systemd-analyze gives; network and serial ports cost 17, and
being able to ask how right the clock is, 4: the filter of system calls knows no asking alone."""


def run(program: str, *arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
    path = find_program(program)
    assert path is not None, program
    return subprocess.run(
        [path, *arguments], input=text, capture_output=True, text=True, timeout=60, check=False
    )


def settings(name: str) -> list[str]:
    return [line.partition("=")[2] for line in UNIT.splitlines() if line.startswith(f"{name}=")]


def entries(name: str) -> list[list[str]]:
    lines = (SYSTEMD / name).read_text().splitlines()
    return [line.split() for line in lines if line and not line.startswith("#")]


@pytest.fixture
def unit(tmp_path: Path) -> Path:
    """Give a copy of the unit that starts the command of this environment."""
    copy = tmp_path / "tidegate.service"
    copy.write_text(UNIT.replace("=/usr/bin/tidegate ", f"={COMMAND} "))
    return copy


def test_the_command_is_the_documented_one() -> None:
    assert settings("ExecStart") == [
        "/usr/bin/tidegate run --config /etc/tidegate/gateway.toml --data /var/lib/tidegate"
    ]


def test_a_wrong_configuration_is_not_tried_again() -> None:
    assert settings("RestartPreventExitStatus") == [str(CANNOT_START)]


def test_a_reload_fails_unless_it_is_taken_or_waits_for_a_restart() -> None:
    command = f"/usr/bin/tidegate reload || test $$? -eq {RESTART_NEEDED}"
    assert settings("ExecReload") == [f"/bin/sh -c '{command}'"]


@pytest.mark.systemd
def test_systemd_has_nothing_to_say_about_the_unit(unit: Path) -> None:
    verified = run("systemd-analyze", "verify", str(unit))
    assert (verified.returncode, verified.stdout, verified.stderr) == (0, "", "")


@pytest.mark.systemd
def test_systemd_has_nothing_to_say_about_the_pipeline_s_units(tmp_path: Path) -> None:
    for file in SYSTEMD.glob("tidegate-pipeline*"):
        here = file.read_text().replace("/usr/bin/tidegate-pipeline ", f"{COMMAND}-pipeline ")
        (tmp_path / file.name).write_text(here)
    copies = [str(each) for each in sorted(tmp_path.iterdir())]
    assert len(copies) == 3
    verified = run("systemd-analyze", "verify", *copies)
    assert (verified.returncode, verified.stdout, verified.stderr) == (0, "", "")


@pytest.mark.systemd
def test_systemd_says_what_it_does_not_know(unit: Path) -> None:
    unit.write_text(unit.read_text() + "\n[Service]\nWatchdog=30\n")
    assert "Watchdog" in run("systemd-analyze", "verify", str(unit)).stderr


@pytest.mark.systemd
def test_the_sandbox_leaves_little_open(unit: Path) -> None:
    arguments = ["security", "--offline=true", "--no-pager", str(unit)]
    rated = run("systemd-analyze", f"--threshold={EXPOSURE}", *arguments)
    assert rated.returncode == 0, rated.stdout
    assert run("systemd-analyze", "--threshold=1", *arguments).returncode != 0


def test_the_three_files_agree_on_user_groups_and_folders() -> None:
    (user,) = settings("User")
    assert settings("Group") == [user]
    created = {kind: name for kind, name, *_ in entries("sysusers.conf")}
    assert created == {"u": user, "g": settings("SupplementaryGroups")[0]}
    folders = {path: (owner, group) for _, path, _, owner, group, _ in entries("tmpfiles.conf")}
    assert folders == {"/etc/tidegate": ("root", user), "/var/lib/tidegate": (user, user)}
    assert {mode for _, _, mode, *_ in entries("tmpfiles.conf")} == {"0750"}
    assert settings("StateDirectory") == ["tidegate"]


@pytest.mark.systemd
def test_sysusers_creates_user_and_group(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    text = (SYSTEMD / "sysusers.conf").read_text()
    created = run("systemd-sysusers", f"--root={tmp_path}", "-", text=text)
    assert created.returncode == 0, created.stderr
    assert (tmp_path / "etc/passwd").read_text().startswith("tidegate:x:")
    groups = {line.partition(":")[0] for line in (tmp_path / "etc/group").read_text().splitlines()}
    assert groups == {"tidegate", "dialout"}


@pytest.mark.systemd
@pytest.mark.root  # who alone may give folders to another user
def test_tmpfiles_creates_the_folders(tmp_path: Path) -> None:
    users = "root:x:0:0::/root:/bin/sh\ntidegate:x:4242:4243::/:/usr/sbin/nologin\n"
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/passwd").write_text(users)
    (tmp_path / "etc/group").write_text("root:x:0:\ntidegate:x:4243:\n")
    text = (SYSTEMD / "tmpfiles.conf").read_text()
    created = run("systemd-tmpfiles", f"--root={tmp_path}", "--create", "-", text=text)
    assert created.returncode == 0, created.stderr
    for folder, owner in (("etc/tidegate", 0), ("var/lib/tidegate", 4242)):
        status = (tmp_path / folder).stat()
        assert (status.st_uid, status.st_gid, status.st_mode & 0o7777) == (owner, 4243, 0o750)
