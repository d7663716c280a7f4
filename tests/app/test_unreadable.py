"""A value in the database over which the start stumbles costs its row, and not the start."""

import asyncio
import os
import signal
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from gateway.app.start import serve
from gateway.config.load import load
from gateway.errors import StartError
from gateway.storage.engine.database import FILE_NAME
from tests.support.ports import free_port

CONFIGURATION = """
[[listener]]
port = {port}
[uplink]
directory = "{landing}"
[[uplink.rule]]
topic = "sensors/#"
where = "CHANGED(value)"
"""


async def start_and_stop(folder: Path) -> None:
    """Run a gateway until it is ready; raise what keeps it from that."""
    file = folder / "gateway.toml"
    file.write_text(CONFIGURATION.format(port=free_port(), landing=folder / "landing"))

    def stop() -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    async with asyncio.timeout(60):
        await serve(load(file), folder / "data", on_ready=stop)


def execute(folder: Path, *statements: str) -> list[Sequence[object]]:
    path = folder / "data" / FILE_NAME
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        return [row for each in statements for row in connection.execute(each).fetchall()]


REMEMBER = "INSERT INTO rule_memory SELECT epoch, 'sensors/{0}', '{1}' FROM rules"


async def test_what_the_start_stumbles_over_is_left_out(tmp_path: Path) -> None:
    await start_and_stop(tmp_path)
    execute(
        tmp_path,
        *(REMEMBER.format(*each) for each in [("a", "[1]"), ("b", "7"), ("c", "[")]),
        "UPDATE rule_memory SET topic = CAST(x'ff' AS TEXT) WHERE topic = 'sensors/a'",
        "INSERT INTO node_frames VALUES ('n1', 1, 1, 1, x'01')",
        "INSERT INTO retained (topic, payload, qos, retain, time, message_expiry)"
        " VALUES ('a', x'', 1, 1, 1, -5), ('b', x'', 1, 1, 1, NULL)",
    )
    await start_and_stop(tmp_path)
    assert execute(tmp_path, "SELECT count(*) FROM rule_memory") == [(0,)]
    assert execute(tmp_path, "SELECT node FROM node_frames") == [("n1",)]
    assert ("b",) in execute(tmp_path, "SELECT topic FROM retained")
    assert len(list((tmp_path / "data").glob("*.corrupt-*[0-9Z]"))) == 1


async def test_what_salvage_does_not_help_ends_with_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stumble(*_: object) -> None:
        raise ValueError("of another world")

    monkeypatch.setattr("gateway.app.start.restore", stumble)
    for _ in range(2):  # by a supervisor, too: the disk does not fill up with copies
        with pytest.raises(StartError, match=r"of another world; .*move the file away") as raised:
            await start_and_stop(tmp_path)
        assert "\n" not in str(raised.value)
    assert len(list((tmp_path / "data").glob("*.corrupt-*[0-9Z]"))) == 1
