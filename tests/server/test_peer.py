import asyncio
import os
from pathlib import Path

import pytest

from gateway.server.transport import address_name, peer_name


@pytest.mark.parametrize(
    ("address", "name"),
    [
        (("192.0.2.7", 40_000), "192.0.2.7:40000"),
        (("::1", 40_000, 0, 0), "[::1]:40000"),
        (None, "unknown"),
        ("", "unknown"),
    ],
)
def test_an_address_has_a_name(address: object, name: str) -> None:
    assert address_name(address) == name


async def test_who_connects_to_a_unix_socket_is_named(tmp_path: Path) -> None:
    names: asyncio.Queue[str] = asyncio.Queue()

    async def note(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        names.put_nowait(peer_name(writer.transport))
        writer.close()

    path = str(tmp_path / "socket")
    server = await asyncio.start_unix_server(note, path)
    _, writer = await asyncio.open_unix_connection(path)
    assert await names.get() == f"process {os.getpid()} of user {os.getuid()}"
    writer.close()
    server.close()
