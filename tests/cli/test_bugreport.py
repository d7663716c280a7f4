"""One archive holds what helps, and no secret."""

import json
import stat
import tarfile
from pathlib import Path

import pytest

from gateway.cli.bugreport import REDACTED, redacted, without_secrets
from gateway.cli.main import main

CONFIG = """
# fleet password: swordfish
[gateway]
id = "barn"
[uplink]
url = "mqtt://127.0.0.1:1"
username = "anna"
password_file = "{file}"
[[uplink.rule]]
topic = "a/#"
"""


def contents(archive: tarfile.TarFile, member: tarfile.TarInfo) -> str:
    file = archive.extractfile(member)
    assert file is not None
    return file.read().decode()


def report(tmp_path: Path, config: str) -> dict[str, str]:
    """Make a report, and return its files by name."""
    file, archive = tmp_path / "gateway.toml", tmp_path / "report.tar.gz"
    file.write_text(config)
    (tmp_path / "data").mkdir(exist_ok=True)
    arguments = ("--data", str(tmp_path / "data"), "--config", str(file))
    assert main(["bugreport", str(archive), *arguments]) == 0
    assert stat.S_IMODE(archive.stat().st_mode) == 0o600
    with tarfile.open(archive) as opened:
        return {Path(each.name).name: contents(opened, each) for each in opened.getmembers()}


def test_the_report_names_files_and_leaves_secrets_out(tmp_path: Path) -> None:
    secret = tmp_path / "fleet-password"
    secret.write_text("swordfish")
    found = report(tmp_path, CONFIG.format(file=secret))
    assert set(found) == {
        *("system.json", "configuration.json", "files.txt", "check.txt"),
        *("doctor.txt", "figures.json", "log.txt"),
    }
    whole = "".join(found.values())
    assert "swordfish" not in whole
    assert "anna" not in found["configuration.json"]
    kept = json.loads(found["configuration.json"])["uplink"]
    assert (kept["password_file"], kept["username"]) == (str(secret), REDACTED)
    assert "exit status" in found["doctor.txt"]
    assert "exit status 0" in found["check.txt"]
    assert json.loads(found["system.json"])["tidegate"].startswith("tidegate ")


def test_a_broken_configuration_does_not_stop_the_report(tmp_path: Path) -> None:
    found = report(tmp_path, "[gateway\n")
    assert "gateway.toml: " in found["configuration.json"]
    assert "exit status 2" in found["check.txt"]


def test_a_file_that_is_there_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "report.tar.gz"
    file.write_text("mine")
    assert main(["bugreport", str(file), "--data", str(tmp_path)]) == 2
    assert file.read_text() == "mine"
    assert f"{file}: File exists" in capsys.readouterr().err


def test_secrets_are_known_by_the_names_of_keys() -> None:
    tables = {"bridge": {"ble": [{"device": [{"name": "a", "key": "0f" * 16}]}]}, "x": {"token": 1}}
    kept = without_secrets(tables)
    assert kept["bridge"]["ble"][0]["device"][0] == {"name": "a", "key": REDACTED}
    assert kept["x"] == {"token": REDACTED}
    assert (
        redacted("to mqtt://anna:pw@fleet:1883, then") == f"to mqtt://{REDACTED}@fleet:1883, then"
    )


def test_a_mistake_that_is_told_with_its_value_tells_no_secret(tmp_path: Path) -> None:
    found = report(tmp_path, '[uplink]\nurl = "mqtt://127.0.0.1:1"\npassword = "swordfish"\n')
    assert f"uplink.password = '{REDACTED}' is not allowed" in found["check.txt"]
    assert "swordfish" not in "".join(found.values())
    assert redacted("key = 'ab', absent", ["ab"]) == f"key = '{REDACTED}', absent"
