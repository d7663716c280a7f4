"""Azurite, which answers as Azure's blob store does, on this machine."""

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

from pipeline.place import Place, place_of
from tests.support.object_store import PLAIN
from tests.support.requirements import AZURITE

ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""Azurite's own, which its manual names."""


@contextmanager
def running() -> Iterator[str]:
    """Run it as long as this lasts; yields its address."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    options = ["--inMemoryPersistence", "--silent", "--skipApiVersionCheck", "--disableTelemetry"]
    with subprocess.Popen([AZURITE, *options, "--blobPort", str(port)]) as process:
        yield f"http://127.0.0.1:{port}/{ACCOUNT}"
        process.terminate()


def environment(url: str) -> dict[str, str]:
    """Return what tells a program of it."""
    return PLAIN | {"AZURE_STORAGE_ENDPOINT": url, "AZURE_STORAGE_ACCOUNT_KEY": KEY}


def new_place() -> Place:
    """Make a container, as soon as it answers; return a place in it."""
    bucket = f"fleet-{time.time_ns()}"
    found = place_of(f"abfss://{bucket}@{ACCOUNT}.dfs.core.windows.net/all")
    end = time.monotonic() + 60
    while True:
        try:
            found.files.create_dir(bucket)
        except OSError:
            assert time.monotonic() < end
            time.sleep(0.1)
        else:
            return found
