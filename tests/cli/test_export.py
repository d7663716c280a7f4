"""A gateway moves to another board."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from gateway.app.identity import MARK
from gateway.cli import export as module
from gateway.cli.main import main
from tests.cli.test_backup import CONFIG, epochs, places, refused, said
from tests.support.paho_clients import Publisher, SessionAway
from tests.support.processes.gateway_process import GatewayProcess, tidegate
from tests.support.waiting import until

KEPT = {
    "numbers": "SELECT epoch, stream, seq FROM outbox ORDER BY id",
    "sessions": "SELECT client_id FROM session ORDER BY client_id",
    "retained": "SELECT topic FROM retained ORDER BY topic",
}


def kept(data: Path) -> dict[str, list[tuple[object, ...]]]:
    with closing(sqlite3.connect(data / "tidegate.db")) as database:
        return {name: list(database.execute(query)) for name, query in KEPT.items()}


def be_of_another_board(data: Path) -> None:
    """Have the data be as if it was made elsewhere."""
    with closing(sqlite3.connect(data / "tidegate.db")) as database, database:
        statement = "INSERT OR REPLACE INTO meta (name, value) VALUES ('board/machine id', 1)"
        database.execute(statement)


def start(folder: Path) -> GatewayProcess:
    return GatewayProcess(folder, (folder / "gateway.toml").read_text()).start()


@pytest.mark.uncovered
def test_a_gateway_moves(tmp_path: Path) -> None:
    old, new, archive = tmp_path / "old", tmp_path / "new", tmp_path / "barn.tar.gz"
    old.mkdir()
    for name, text in (("users", ""), ("acl", "topic readwrite #\n"), ("fleet-password", "s\n")):
        (old / name).write_text(text)
    gateway = GatewayProcess(old, CONFIG.format(folder=old)).start()
    try:
        away = SessionAway(gateway.port, "house/#")
        publisher = Publisher(gateway.port)
        for number in range(5):
            assert publisher.publish(f"house/{number}", b"x", retain=True) < 0x80
        publisher.close()
        assert "is in use" in refused("export", archive, *places(old))
        assert gateway.stop() == 0
        be_of_another_board(old / "data")
        before = kept(old / "data")
        assert len(before["numbers"]) == len(before["retained"]) == 5
        said("export", archive, *places(old))
        assert f"into {archive}" in (old / "data" / MARK).read_text()
        again = tmp_path / "again.tar"
        assert "--again exports it once more" in refused("export", again, *places(old))
        assert not again.exists()
        said("export", again, "--again", *places(old))

        assert "which `tidegate import` reads" in refused("restore", archive, *places(new))
        output = said("import", archive, *places(new))
        assert f"{archive}.imported: is the archive now" in output
        assert "was imported already" in refused("import", f"{archive}.imported", *places(new))
        assert kept(new / "data") == before

        gateway.start()  # the old board
        assert "nothing is sent from here" in gateway.log()
        gateway.stop()
        moved = start(new)
        try:
            assert "exported" not in moved.log()
            assert "another board" not in moved.log()
            away._port = moved.port
            assert {*away.comes_back()} <= {f"house/{number}" for number in range(5)}
        finally:
            moved.kill()
        assert {*epochs(old / "data")} & {*epochs(new / "data")} == {*epochs(old / "data")[:1]}
    finally:
        gateway.kill()


def test_a_restored_copy_is_told_and_confirmed(tmp_path: Path) -> None:
    gateway = GatewayProcess(tmp_path).start()
    try:
        gateway.stop()
        be_of_another_board(gateway.data)
        said("backup", tmp_path / "a.tar", *places(tmp_path))
        assert "which `tidegate restore` reads" in refused(
            "import", tmp_path / "a.tar", *places(tmp_path / "new")
        )
        gateway.start()
        until(lambda: "was made on another board or card" in gateway.log(), "told", gateway.log)
        url = f"mqtt://127.0.0.1:{gateway.port}"
        assert "takes no name: one" in refused("uplink", "confirm", "one", url)
        assert "identity_moved" in tidegate("status", "--url", url).stdout
        assert said("uplink", "confirm", url) == "uplink: this board has the gateway's identity\n"
        assert "identity_moved" not in tidegate("status", "--url", url).stdout
        gateway.kill()
        lines = gateway.log().count("another board")
        gateway.start()
        assert gateway.log().count("another board") == lines
    finally:
        gateway.kill()


def test_it_comes_back_to_the_board_that_it_left(tmp_path: Path) -> None:
    gateway = GatewayProcess(tmp_path).start()
    gateway.stop()
    archive = tmp_path / "a.tar"
    said("export", archive, *places(tmp_path))
    assert "exists already" in refused("import", archive, *places(tmp_path))
    (gateway.data / "tidegate.db").rename(tmp_path / "old.db")
    said("import", archive, *places(tmp_path))
    assert not (gateway.data / MARK).exists()


def test_what_fails_marks_nothing(tmp_path: Path) -> None:
    assert "there is no such file" in refused("export", tmp_path / "a.tar", *places(tmp_path))
    data = tmp_path / "data"
    data.mkdir()
    (data / "tidegate.db").write_bytes(b"x" * 8192)
    assert "the backup failed" in refused("export", tmp_path / "a.tar", *places(tmp_path))
    assert not (data / MARK).exists()
    (data / f"{MARK}.unfinished").mkdir()
    assert "Is a directory" in refused("export", tmp_path / "a.tar", *places(tmp_path))


def test_an_archive_that_cannot_be_renamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gateway = GatewayProcess(tmp_path).start()
    gateway.stop()
    archive = tmp_path / "a.tar"
    assert main(["export", str(archive), *map(str, places(tmp_path))]) == 0
    monkeypatch.setattr(module, "IMPORTED", "x" * 256)
    assert main(["import", str(archive), *map(str, places(tmp_path / "new"))]) == 0
    assert f"{archive}: File name too long: delete it" in capsys.readouterr().out
