import asyncio
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.broker.past_subscribers import CONFIG, Change, converse
from tests.support.ports import free_port
from tests.support.processes.gateway_process import GatewayProcess


@pytest.fixture(scope="session")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """Give a gateway that has stopped after that conversation."""
    folder = tmp_path_factory.mktemp("why")
    process = GatewayProcess(folder, CONFIG.format(port=free_port())).start()
    asyncio.run(converse(process.port))
    process.stop()
    yield process
    process.kill()


@pytest.fixture
def database(gateway: GatewayProcess) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(gateway.data / "tidegate.db")
    yield connection
    connection.close()


@pytest.fixture
def epoch(database: sqlite3.Connection) -> str:
    return str(database.execute("SELECT epoch FROM history").fetchone()[0])


@pytest.fixture
def changed(gateway: GatewayProcess, tmp_path: Path) -> Change:
    """Give what makes a data folder with a copy of the gateway's database, changed by a script."""

    def change(script: str) -> str:
        source = sqlite3.connect(gateway.data / "tidegate.db")
        target = sqlite3.connect(tmp_path / "tidegate.db")
        source.backup(target)
        target.executescript(script)
        target.close()
        source.close()
        return str(tmp_path)

    return change
