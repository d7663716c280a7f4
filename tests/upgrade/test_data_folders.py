"""Today's gateway on the data folder of each version that somebody may have."""

import asyncio
import json
import sqlite3
import tarfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from gateway.storage.engine.migrations.migrate import migrations
from tests.support.fleet.fleet_broker import FleetBroker
from tests.support.processes.gateway_process import GatewayProcess, tidegate
from tests.support.raw_client import Clients
from tests.upgrade.state import CONFIG, FOR_EVER, Left, find, rows_of

FOLDERS = Path(__file__).with_name("folders")
VERSIONS = [file.stem for file in sorted(FOLDERS.glob("*.json"))]
LATEST = "0.1.0"

EMPTY = {
    "attempt": "written for a message that its consumer did not acknowledge in time",
    "clock_records": "written when the clock is set while the gateway runs",
    "outbox_steps": "the same",
    "outbox_totals": "written for an outbox of 1,000 rows and more",
    "packet_counters": "written for a Bluetooth device that encrypts",
}
"""Tables of which the newest folder has no row, and why."""


def unpack(version: str, folder: Path) -> Path:
    with tarfile.open(FOLDERS / f"{version}.tar.xz") as archive:
        if hasattr(tarfile, "data_filter"):
            archive.extraction_filter = tarfile.data_filter
        archive.extractall(folder)
    return folder / "data"


@pytest.fixture
def fleet() -> FleetBroker:
    return FleetBroker()


@pytest.fixture
def gateway(tmp_path: Path, fleet: FleetBroker) -> Iterator[GatewayProcess]:
    made = GatewayProcess(tmp_path, CONFIG.format(port=fleet.port) + FOR_EVER)
    yield made
    made.kill()


def test_there_is_a_folder_of_the_schema_before_today_s_and_of_today_s(tmp_path: Path) -> None:
    """After a new migration somebody makes a folder: `tests/upgrade/make_folder.py`."""
    schemas = set()
    for version in VERSIONS:
        data = unpack(version, tmp_path / version)
        with closing(sqlite3.connect(data / "tidegate.db")) as database:
            schemas.add(database.execute("PRAGMA user_version").fetchone()[0])
    assert max(schemas) == migrations()[-1][0]
    assert min(schemas) == 1


def test_the_newest_folder_has_every_kind_of_state(tmp_path: Path) -> None:
    rows = rows_of(unpack(LATEST, tmp_path))
    assert {name for name, count in rows.items() if not count} == set(EMPTY)


@pytest.mark.uncovered
@pytest.mark.parametrize("version", VERSIONS)
async def test_everything_is_found_again(
    version: str, tmp_path: Path, gateway: GatewayProcess, fleet: FleetBroker
) -> None:
    data = unpack(version, tmp_path)
    before = rows_of(data)
    left = Left(**json.loads((FOLDERS / f"{version}.json").read_text()))
    await asyncio.to_thread(gateway.start)
    clients = Clients(gateway.port)
    await find(clients, data, fleet, left)
    await clients.close()
    assert gateway.stop() == 0
    assert " ERROR " not in gateway.log()
    assert "salvage" not in gateway.log()
    after = rows_of(data)
    assert after["node_frames"] == before["node_frames"]
    assert after["history"] > before["history"]
    assert after["starts"] == before["starts"] + 1
    await fleet.stop()


def refused(folder: Path) -> str:
    """Return the only line of a start that must end with status 2."""
    options = ["--data", str(folder / "data"), "--config", str(folder / "gateway.toml")]
    done = tidegate("run", *options)
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


@pytest.mark.parametrize("version", VERSIONS)
def test_what_a_later_version_wrote_is_refused_and_left_as_it_is(
    version: str, tmp_path: Path, gateway: GatewayProcess
) -> None:
    data = unpack(version, tmp_path)
    newest = migrations()[-1][0]
    with closing(sqlite3.connect(data / "tidegate.db", isolation_level=None)) as database:
        for number, script in migrations():
            if number > database.execute("PRAGMA user_version").fetchone()[0]:
                database.executescript(script)
                database.execute(f"PRAGMA user_version = {number}")
        database.executescript("CREATE TABLE later (x); INSERT INTO later VALUES (1);")
        database.execute(f"PRAGMA user_version = {newest + 1}")
    rows = rows_of(data)
    assert refused(tmp_path) == (
        f"tidegate: {data}/tidegate.db: schema version {newest + 1}, this Tidegate supports up to "
        f"{newest}: start the version that wrote it, or move the file away"
        " (tidegate docs upgrade)\n"
    )
    assert rows_of(data) == rows
