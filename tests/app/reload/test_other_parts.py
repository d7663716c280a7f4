"""Metrics, the disk's settings and simulated nodes come, change and go."""

import asyncio
import socket
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from gateway.mqtt.packets import Publish
from tests.app.reload.conftest import Changing
from tests.support.ports import free_port


def get(port: int, host: str = "127.0.0.1") -> str:
    """Return the page of whether all is well."""
    with urlopen(f"http://{host}:{port}/healthz", timeout=30) as page:
        return str(page.read().decode())


async def test_metrics_come_move_and_go(changing: Changing) -> None:
    one, other = free_port(), free_port()
    await changing.start("")
    assert await changing.changed(f"[metrics]\nport = {one}\n") == ["metrics"]
    assert await asyncio.to_thread(get, one) == "ok\n"
    await changing.changed(f"[metrics]\nport = {one}\nhosts = ['barn.lan']\n")  # the same port
    assert await asyncio.to_thread(get, one) == "ok\n"
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", other))
        taken.listen()
        text = f"[metrics]\nport = {other}\n[broker]\nmaximum_inflight = 7\n"
        (refusal,) = (await changing.reload(text))["refused"]
        assert f"cannot serve metrics at 127.0.0.1:{other}" in refusal["error"]
    assert changing.gateway.broker.settings.maximum_inflight != 7
    assert await asyncio.to_thread(get, one) == "ok\n"
    await changing.changed(f"[metrics]\nport = {other}\n")
    assert await asyncio.to_thread(get, other) == "ok\n"
    await changing.changed("")
    for port in (one, other):
        with pytest.raises(URLError):
            await asyncio.to_thread(get, port)


async def test_a_refusal_gives_metrics_their_address_back(changing: Changing) -> None:
    port = free_port()
    await changing.start(f"[metrics]\nport = {port}\n")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        listener = f"[[listener]]\nport = {taken.getsockname()[1]}\nname = 'other'\n"
        text = f"[metrics]\nport = {port}\nhosts = ['barn.lan']\n"
        text += '[[channel]]\nname = "a"\nfilter = "b"\n'
        assert (await changing.reload(text + listener))["refused"]
    assert await asyncio.to_thread(get, port) == "ok\n"
    assert changing.gateway.configuration.metrics is not None
    assert changing.gateway.configuration.metrics.hosts == ()


async def test_how_the_disk_is_written_to_changes(changing: Changing) -> None:
    await changing.start("")
    counters, writer = changing.gateway.counters, changing.gateway.writer
    text = '[storage]\ncommit_delay = 9\nwrite_budget = "1GB/day"\nendurance = "1TB"\n'
    await changing.changed(text + '[[durability]]\ntopic = "a/#"\nclass = "memory"\n')
    assert writer.commit_delay == 0.009
    assert counters.values["tidegate/storage/commit_delay"] == 9
    assert counters.count("tidegate/storage/write_budget") == 10**9
    assert counters.values["tidegate/storage/durability_classes"] == "topic a/#: memory"
    await changing.changed("")
    assert counters.count("tidegate/storage/write_budget") == 0
    assert writer.commit_delay == 0.005


async def test_simulated_nodes_come_and_go(changing: Changing, tmp_path: Path) -> None:
    tty = tmp_path / "tty"
    await changing.start("")
    node = f'[[simulator]]\nport = "{tty}"\ninterval = 0.05\n'
    bridge = f'[[serial]]\nport = "{tty}"\n'
    await changing.changed(node + bridge)
    client = await changing.clients.connect("c")
    await client.subscribe("sensors/#")
    async with asyncio.timeout(30):
        while not isinstance(packet := await client.receive(), Publish):
            pass
    assert packet.topic.startswith("sensors/demo/")
    await changing.changed("")
    assert not tty.exists()
