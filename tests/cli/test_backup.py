"""A backup of a gateway that runs, and a new card."""

import io
import json
import os
import sqlite3
import tarfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from gateway.cli.main import main
from tests.support.paho_clients import Publisher, SessionAway
from tests.support.processes.gateway_process import GatewayProcess, tidegate

CONFIG = """
[gateway]
id = "barn"
[[listener]]
allow_anonymous = true
password_file = "{folder}/users"
acl_file = "{folder}/acl"
[[uplink]]
url = "mqtt://127.0.0.1:1"
username = "barn"
password_file = "{folder}/fleet-password"
[[uplink.rule]]
topic = "house/#"
"""


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[GatewayProcess]:
    folder = tmp_path / "old"
    folder.mkdir()
    (folder / "users").write_text("")
    (folder / "acl").write_text("topic readwrite #\n")
    (folder / "fleet-password").write_text("secret\n")
    made = GatewayProcess(folder, CONFIG.format(folder=folder)).start()
    yield made
    made.kill()


def places(folder: Path) -> tuple[object, ...]:
    return "--data", folder / "data", "--config", folder / "gateway.toml"


def said(*arguments: object) -> str:
    done = tidegate(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def refused(*arguments: object) -> str:
    done = tidegate(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


def epochs(data: Path) -> list[str]:
    with closing(sqlite3.connect(data / "tidegate.db")) as database:
        return [epoch for (epoch,) in database.execute("SELECT epoch FROM starts ORDER BY start")]


def test_a_card_that_dies(gateway: GatewayProcess, tmp_path: Path) -> None:
    old, archive, secrets = gateway.folder, tmp_path / "barn.tar.gz", tmp_path / "secrets.tar"
    away = SessionAway(gateway.port, "house/#")
    publisher = Publisher(gateway.port)
    for number in range(20):
        assert publisher.publish(f"house/{number}", b"x") < 0x80
    output = said("backup", archive, "--secrets", secrets, *places(old))
    assert "keep it apart" in output
    assert {file.stat().st_mode & 0o777 for file in (archive, secrets)} == {0o600}
    assert publisher.publish("house/later", b"x") < 0x80  # which the backup has not
    publisher.close()
    gateway.kill()
    before = epochs(gateway.data)
    old.rename(tmp_path / "dead")
    old.mkdir()

    output = said("restore", archive, secrets, *places(old))
    assert "gateway barn as of 20" in output
    assert (old / "fleet-password").read_text() == "secret\n"
    assert (old / "fleet-password").stat().st_mode & 0o777 == 0o640
    assert (old / "acl").exists()
    again = GatewayProcess(old, (old / "gateway.toml").read_text())
    try:
        again.start()
        away._port = again.port
        topics = set(away.comes_back())
        assert topics <= {f"house/{number}" for number in range(20)}
        assert again.stop() == 0
    finally:
        again.kill()
    after = epochs(again.data)
    assert after[:-1] == before
    assert after[-1] not in before


def test_without_secrets_they_are_named(gateway: GatewayProcess, tmp_path: Path) -> None:
    archive = tmp_path / "barn.tar"
    output = said("backup", archive, *places(gateway.folder))
    left_out = [gateway.folder / "users", gateway.folder / "fleet-password"]
    assert [line.partition(": left out")[0] for line in output.splitlines()[1:]] == [
        str(file) for file in left_out
    ]
    with tarfile.open(archive) as opened:
        names = set(opened.getnames())
        content = opened.extractfile("manifest.json")
        assert content is not None
        manifest = json.load(content)
    acl = f"files{gateway.folder}/acl"
    assert names == {"manifest.json", "tidegate.db", "gateway.toml", acl}
    assert (manifest["gateway"], manifest["epoch"]) == ("barn", epochs(gateway.data)[-1])
    new = tmp_path / "new"
    output = said("restore", archive, *places(new))
    assert [line for line in output.splitlines() if "is not in" in line] == [
        f"{file}: is not in {archive}: restore the archive of --secrets, or create it again"
        for file in left_out
    ]
    assert f"{gateway.folder}/acl: exists already and is not changed" in output


def test_a_gateway_without_a_configuration(tmp_path: Path) -> None:
    gateway = GatewayProcess(tmp_path).start()
    try:
        said("backup", tmp_path / "a.tar", *places(tmp_path))
    finally:
        gateway.kill()
    output = said("restore", tmp_path / "a.tar", *places(tmp_path / "new"))
    assert "gateway of no configuration" in output


def test_what_is_there_is_not_replaced(gateway: GatewayProcess, tmp_path: Path) -> None:
    archive = tmp_path / "barn.tar"
    said("backup", archive, *places(gateway.folder))
    assert "is there already" in refused("backup", archive, *places(gateway.folder))
    assert "is in use" in refused("restore", archive, *places(gateway.folder))  # it runs
    gateway.stop()
    rows = epochs(gateway.data)
    assert "exists already; move it away" in refused("restore", archive, *places(gateway.folder))
    assert epochs(gateway.data) == rows
    assert sorted(each.name for each in tmp_path.iterdir()) == ["barn.tar", "old"]


def test_the_log_of_a_killed_gateway_is_not_added_to_a_backup(
    gateway: GatewayProcess, tmp_path: Path
) -> None:
    archive, old = tmp_path / "barn.tar", gateway.data / "tidegate.db"
    said("backup", archive, *places(gateway.folder))
    gateway.kill()
    old.rename(tmp_path / "old.db")
    error = refused("restore", archive, *places(gateway.folder))
    assert f"{old}-wal: exists already" in error
    assert not old.exists()


def with_manifest(**values: object) -> bytes:
    text = json.dumps({"format": 1, "version": "9.1", "schema": 1, "made": "", **values}).encode()
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        entry = tarfile.TarInfo("manifest.json")
        entry.size = len(text)
        archive.addfile(entry, io.BytesIO(text))
    return file.getvalue()


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "is no backup of Tidegate"),
        (b"x" * 2000, "is no backup of Tidegate"),
        (with_manifest(format="one"), "is no backup of Tidegate"),
        (with_manifest(format=2), "was made by Tidegate 9.1"),
        (with_manifest(schema=99), "schema version 99, this Tidegate supports up to"),
    ],
)
def test_what_cannot_be_restored(tmp_path: Path, content: bytes, complaint: str) -> None:
    file = tmp_path / "a.tar"
    file.write_bytes(content)
    assert complaint in refused("restore", file, *places(tmp_path))
    assert not (tmp_path / "data").exists()


def test_no_data_folder(tmp_path: Path) -> None:
    output = refused("backup", tmp_path / "a.tar", *places(tmp_path))
    assert output == (
        f"tidegate: {tmp_path}/data/tidegate.db: there is no such file; --data names the data"
        " folder\n"
    )
    assert "No such file" in refused("restore", tmp_path / "a.tar", *places(tmp_path))


def test_a_path_that_leads_elsewhere_is_not_written(tmp_path: Path) -> None:
    file, elsewhere = tmp_path / "a.tar", tmp_path / "elsewhere"
    text = with_manifest()
    file.write_bytes(text)
    with tarfile.open(file, "a") as archive:
        entry = tarfile.TarInfo(f"files{tmp_path}/data/../elsewhere")
        archive.addfile(entry, io.BytesIO())
    said("restore", file, *places(tmp_path))
    assert not elsewhere.exists()


@pytest.mark.parametrize("damage", ["database", "disk"])
def test_what_fails_leaves_nothing(
    tmp_path: Path, damage: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    if damage == "database":
        (data / "tidegate.db").write_bytes(b"x" * 8192)
    else:
        with closing(sqlite3.connect(data / "tidegate.db")) as database:
            database.execute("PRAGMA user_version = 0")
            database.execute("CREATE TABLE a (b)")

        def fails(_descriptor: int) -> None:
            raise OSError(28, os.strerror(28))

        monkeypatch.setattr(os, "fsync", fails)
    arguments = ["backup", str(tmp_path / "a.tar"), *map(str, places(tmp_path))]
    assert main(arguments) == 2
    assert f"{tmp_path}/a.tar: " in capsys.readouterr().err
    assert [each.name for each in tmp_path.iterdir()] == ["data"]
