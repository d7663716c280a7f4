"""Files that others may change, or whose secrets they may read."""

import os
import pwd
from pathlib import Path

import pytest

from gateway.app.checks import file_warnings as module
from gateway.app.checks.file_warnings import MAXIMUM, file_warnings
from gateway.config.configuration import Configuration
from gateway.config.load import read
from gateway.settings.listener import ListenerSettings
from tests.support.table import table

CONFIG = """
[[listener]]
password_file = "{folder}/users"
acl_file = "{folder}/acl"
tls_certificate = "{folder}/both.pem"
[[listener]]
port = 8883
tls_certificate = "{folder}/server.pem"
tls_key = "{folder}/server.key"
client_ca = "{folder}/ca.pem"
[uplink]
url = "mqtts://fleet.example"
username = "barn"
password_file = "{folder}/password"
ca_file = "{folder}/fleet.pem"
"""

KEYS = {  # what names each file, and whether it is secret
    "users": ("listener[0].password_file", True),
    "acl": ("listener[0].acl_file", False),
    "both.pem": ("listener[0].tls_certificate", True),
    "server.pem": ("listener[1].tls_certificate", False),
    "server.key": ("listener[1].tls_key", True),
    "ca.pem": ("listener[1].client_ca", False),
    "password": ("uplink.password_file", True),
    "fleet.pem": ("uplink.ca_file", False),
}


def written(folder: Path, config: str = CONFIG) -> Configuration:
    """Return a configuration whose files are as they should be."""
    for name in KEYS:
        (folder / name).write_text("")
        (folder / name).chmod(0o640)
    file = folder / "gateway.toml"
    file.write_text(config.format(folder=folder))
    file.chmod(0o644)
    return read(file)[0]


def test_what_is_in_order_is_no_news(tmp_path: Path) -> None:
    configuration = written(tmp_path)
    assert file_warnings(configuration, tmp_path / "data") == []
    (tmp_path / "data").mkdir(0o755)
    assert file_warnings(configuration, tmp_path / "data") == []
    assert file_warnings(Configuration("(none)", "id"), tmp_path / "data") == []


@table("name", list(KEYS))
def test_a_file_that_others_may_read_or_change(tmp_path: Path, name: str) -> None:
    configuration = written(tmp_path)
    key, secret = KEYS[name]
    file = tmp_path / name
    file.chmod(0o644)
    text = f"{key}: every user of this machine may read {file} (0644): chmod o-r {file}"
    assert file_warnings(configuration) == ([text] if secret else [])
    file.chmod(0o642)
    text = f"{key}: every user of this machine may change {file} (0642): chmod o-w {file}"
    assert file_warnings(configuration) == [text]


def test_the_configuration_itself(tmp_path: Path) -> None:
    configuration = written(tmp_path)
    (tmp_path / "gateway.toml").chmod(0o646)
    (warning,) = file_warnings(configuration)
    assert warning.startswith("the configuration: every user of this machine may change")
    ble = '[[ble]]\n[[ble.device]]\naddress = "A4:C1:38:11:22:33"\nkey = "{key}"\n'
    configuration = written(tmp_path, ble.format(key="0" * 32))
    (warning,) = file_warnings(configuration)
    assert warning.startswith("the configuration: every user of this machine may read")


def test_folders_in_which_somebody_may_replace_them(tmp_path: Path) -> None:
    configuration = written(tmp_path)
    tmp_path.chmod(0o777)
    (warning,) = file_warnings(configuration)
    everybody = "the configuration: every user of this machine may"
    assert warning == f"{everybody} replace what is in {tmp_path} (0777): chmod o-w {tmp_path}"
    tmp_path.chmod(0o1777)  # as /tmp
    assert file_warnings(configuration) == []
    tmp_path.chmod(0o700)


def test_the_data_folder_and_where_a_link_leads(tmp_path: Path) -> None:
    open_folder = tmp_path / "open"
    (open_folder / "data").mkdir(parents=True)
    open_folder.chmod(0o777)
    (open_folder / "data").chmod(0o757)
    (tmp_path / "link").symlink_to(open_folder / "data")
    link = tmp_path / "link"
    changed, replaced = file_warnings(Configuration("(none)", "id"), link)
    everybody = "the data folder: every user of this machine may"
    assert changed == f"{everybody} change {link} (0757): chmod o-w {link}"
    assert replaced.startswith(f"{everybody} replace what is in {open_folder} (0777): chmod o-w")


def test_what_belongs_to_another_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    configuration = written(tmp_path)
    owner = tmp_path.stat().st_uid
    monkeypatch.setattr(module, "_trusted", lambda _: frozenset({owner + 4_711}))
    reported = file_warnings(configuration)
    acl = tmp_path / "acl"
    name = "root" if owner == 0 else pwd.getpwuid(owner).pw_name
    text = f"belongs to user {name}, who may change it: chown root {acl}"
    assert f"listener[0].acl_file: {acl} {text}" in reported
    assert f"the configuration: {tmp_path} belongs to user" in "\n".join(reported)


def test_whose_files_are_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert {0, os.geteuid(), tmp_path.stat().st_uid} <= module._trusted(tmp_path)
    assert any("4711471" in line for line in module._of_owner("key", tmp_path, 4_711_471))
    nobody = pwd.getpwnam("nobody").pw_uid
    assert list(module._of_owner("key", tmp_path, nobody))
    monkeypatch.setattr(module, "SERVICE_USER", "nobody")
    assert not list(module._of_owner("key", tmp_path, nobody))


def test_a_file_that_cannot_be_looked_at_is_somebody_else_s_business(tmp_path: Path) -> None:
    gone = ListenerSettings(acl_file=str(tmp_path / "no" / "acl"), password_file="credential:users")
    assert file_warnings(Configuration("(none)", "id", listeners=(gone,))) == []


def test_many_are_bounded(tmp_path: Path) -> None:
    listeners = []
    for number in range(MAXIMUM + 5):
        file = tmp_path / str(number)
        file.touch()
        file.chmod(0o666)
        listeners.append(ListenerSettings(acl_file=str(file)))
    reported = file_warnings(Configuration("(none)", "id", listeners=tuple(listeners)))
    assert len(reported) == MAXIMUM + 1
    assert reported[-1] == "5 more things that others may read or change"
