"""Makes the data folder of a version, for tests/upgrade/test_data_folders.py.

    PYTHONPATH=. .venv/bin/python tests/upgrade/make_folder.py CHECKOUT NAME

CHECKOUT is a checkout of that version. It is run by the Python of this one, and killed in the end:
a version that is replaced by the next one may have lost its power before.
"""

import asyncio
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import asdict
from pathlib import Path

from tests.support.disk.storage import until
from tests.support.fleet.fleet_broker import FleetBroker
from tests.support.ports import free_port
from tests.support.raw_client import Clients
from tests.support.waiting import listens
from tests.upgrade.state import CONFIG, FOR_EVER, NODE, leave, rows_of

FOLDERS = Path(__file__).with_name("folders")
RUN = "import sys; from gateway.cli.main import main; sys.exit(main())"
LEFT_OUT = {"lock", "reserve", "tidegate.db-shm"}
"""What is made anew where it is missing; `reserve` is room for a disk that is full."""


async def make(checkout: Path, name: str) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        fleet = FleetBroker()
        await fleet.start()
        config = CONFIG.format(port=fleet.port) + NODE.format(folder=folder)
        keys = (checkout / "gateway/settings/broker.py").read_text()
        if "maximum_anonymous_session_expiry" in keys:
            config += FOR_EVER
        (folder / "gateway.toml").write_text(config)
        port, data = free_port(), folder / "data"
        clients = Clients(port)
        options = ["--config", str(folder / "gateway.toml"), "--port", str(port)]
        process = subprocess.Popen(  # noqa: ASYNC220  # returns at once
            [sys.executable, "-c", RUN, "run", *options, "--data", str(data)],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(checkout)},
        )
        try:
            await until(lambda: listens(port))
            left = await leave(clients, data, fleet)
            await until(lambda: rows_of(data)["node_frames"] > 0)
            await asyncio.sleep(3)  # what is written now and then is written
        finally:
            process.kill()
            process.wait()  # it was killed
            await fleet.stop()
        await clients.close()
        FOLDERS.mkdir(exist_ok=True)
        (FOLDERS / f"{name}.json").write_text(json.dumps(asdict(left)) + "\n")
        with tarfile.open(FOLDERS / f"{name}.tar.xz", "w:xz") as archive:
            archive.add(data, "data", filter=wanted)


def wanted(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if Path(entry.name).name in LEFT_OUT else entry


if __name__ == "__main__":
    asyncio.run(make(Path(sys.argv[1]).resolve(), sys.argv[2]))
