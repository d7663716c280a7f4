"""What the service may read and write, told to whoever checks a configuration."""

import os
import pwd
from pathlib import Path

import pytest

from gateway.app.checks import check, service
from gateway.app.checks.service import find_service, read_unit, service_warnings
from gateway.config.configuration import Configuration
from gateway.config.errors import ConfigurationError
from gateway.config.load import load

OURS = Path(__file__).parents[3] / "systemd/tidegate.service"


def unit(folder: Path, config: Path, *lines: str) -> tuple[Path, ...]:
    """Write a unit that runs with `config`; return the folders of units."""
    text = (
        f"[Service]\nExecStart=/usr/bin/tidegate run --config {config} --data /var/lib/tidegate\n"
    )
    (folder / "tidegate.service").write_text("\n".join((text, *lines)) + "\n")
    return (folder,)


def configured(folder: Path, text: str) -> Configuration:
    file = folder / "gateway.toml"
    file.write_text(text)
    return load(file)


def warned(folder: Path, text: str, *lines: str) -> list[str]:
    configuration = configured(folder, text)
    found = find_service(configuration, unit(folder, folder / "gateway.toml", *lines))
    assert found is not None
    return list(service_warnings(configuration, found))


def listener(**keys: str) -> str:
    lines = [f"{name} = '{value}'" for name, value in keys.items()]
    return "\n".join(("[[listener]]", *lines, ""))


def test_our_own_unit_is_read() -> None:
    found = read_unit(OURS.read_text(encoding="utf-8"))
    assert found is not None
    assert found.config == Path("/etc/tidegate/gateway.toml")
    assert (found.user, found.groups) == ("tidegate", ("dialout",))
    assert found.writable == (Path("/var/lib/tidegate"), Path("/run/tidegate"))
    assert {Path("/home"), Path("/root"), Path("/tmp")} <= {*found.hidden}


def test_a_drop_in_adds_and_empties(tmp_path: Path) -> None:
    configuration = configured(tmp_path, "")
    folders = unit(tmp_path, tmp_path / "gateway.toml", "User=a", "LoadCredential=one:/x")
    drop_in = tmp_path / "tidegate.service.d/more.conf"
    drop_in.parent.mkdir()
    drop_in.write_text("[Service]\n# a comment = no\nUser=b\nLoadCredential=two:/y\n")
    found = find_service(configuration, folders)
    assert found is not None
    assert (found.user, found.credentials) == ("b", frozenset({"one", "two"}))
    drop_in.write_text("[Service]\nLoadCredential=\nLoadCredential=three:/z\n")
    found = find_service(configuration, folders)
    assert found is not None
    assert found.credentials == {"three"}


@pytest.mark.parametrize("text", ["", "[Service]\nExecStart=/usr/bin/tidegate run\n", "nonsense"])
def test_a_unit_without_a_configuration_is_no_service_of_it(tmp_path: Path, text: str) -> None:
    (tmp_path / "tidegate.service").write_text(text)
    assert find_service(configured(tmp_path, ""), (tmp_path,)) is None


def test_the_service_of_another_configuration(tmp_path: Path) -> None:
    assert find_service(configured(tmp_path, ""), unit(tmp_path, tmp_path / "other.toml")) is None
    assert find_service(configured(tmp_path, ""), (tmp_path / "none",)) is None


@pytest.mark.parametrize(
    ("path", "line", "reason"),
    [
        ("/home/anna/users", "ProtectHome=yes", "its sandbox hides /home; move the file"),
        ("/root/users", "ProtectHome=true", "its sandbox hides /root; move the file"),
        ("/tmp/users", "PrivateTmp=yes", "its sandbox hides /tmp; move the file"),
        ("users", "", "it starts in /, so write the whole path"),
    ],
)
def test_files_that_the_sandbox_hides(tmp_path: Path, path: str, line: str, reason: str) -> None:
    (texts,) = warned(tmp_path, listener(password_file=path), line)
    assert texts.startswith(f"listener[0].password_file: the service cannot use {path}: {reason}")


def test_a_home_is_open_to_a_service_without_a_sandbox(tmp_path: Path) -> None:
    assert warned(tmp_path, listener(password_file="/home/anna/users")) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to others")
@pytest.mark.parametrize(
    ("file_mode", "folder_mode", "group", "closed"),
    [
        (0o640, 0o755, 0, "users"),
        (0o644, 0o700, 0, "etc"),
        (0o640, 0o750, -1, ""),
        (0o604, 0o755, 0, ""),
    ],
)
def test_files_that_are_closed_to_its_user(
    tmp_path: Path, file_mode: int, folder_mode: int, group: int, closed: str
) -> None:
    user = pwd.getpwnam("nobody")
    for folder in tmp_path.parents[: len(tmp_path.parents) - 2]:
        folder.chmod(0o755)
    tmp_path.chmod(0o755)
    folder = tmp_path / "etc"
    folder.mkdir()
    file = folder / "users"
    file.touch()
    for path, mode in ((file, file_mode), (folder, folder_mode)):
        os.chown(path, 0, user.pw_gid if group else 0)
        path.chmod(mode)
    reported = warned(tmp_path, listener(password_file=str(file)), "User=nobody")
    assert [line.partition("/etc")[0] != "" for line in reported] == [True] * bool(closed)
    if closed:
        assert f"{closed} is closed to its user: chgrp nobody and chmod g+" in reported[0]


def test_places_that_it_may_not_write_to(tmp_path: Path) -> None:
    lines = ("ProtectSystem=strict", "StateDirectory=tidegate", "ReadWritePaths=-/srv/landing")
    text = "[[uplink]]\nname = 'a'\ndirectory = '{}'\n"
    assert warned(tmp_path, text.format("/srv/landing/a"), *lines) == []
    assert warned(tmp_path, text.format("/var/lib/tidegate/x"), *lines) == []
    (reported,) = warned(tmp_path, text.format("/srv/other"), *lines)
    assert "the service cannot use /srv/other: its sandbox closes it; ReadWritePaths=" in reported
    assert warned(tmp_path, text.format("/srv/other"), "StateDirectory=tidegate") == []


def test_a_credential_of_the_service_is_no_mistake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = listener(password_file="credential:users")
    text += "[[uplink]]\nurl = 'mqtt://fleet'\npassword_file = 'credential:fleet'\n"
    configuration = configured(tmp_path, text)
    folders = unit(tmp_path, tmp_path / "gateway.toml", "LoadCredential=users:/a")
    monkeypatch.setattr(
        service, "find_service", lambda configuration: find_service(configuration, folders)
    )
    with pytest.raises(ConfigurationError, match=r"uplink\.password_file = 'credential:fleet'"):
        check.check_configuration(configuration)
    unit(tmp_path, tmp_path / "gateway.toml", "LoadCredential=users:/a", "SetCredential=fleet:x")
    check.check_configuration(configuration)
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))  # the service itself looks
    with pytest.raises(ConfigurationError, match=r"listener\[0\].password_file"):
        check.check_configuration(configuration)


def test_a_service_knows_its_own_credentials_alone() -> None:
    found = service.read_unit(OURS.read_text(encoding="utf-8"))
    assert found is not None
    assert not found.knows_credential("credential:users")
    assert not found.knows_credential("/etc/tidegate/users")
