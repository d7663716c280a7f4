"""A serial node's frames whose class waits: one commit for all that the node can send meanwhile."""

import json
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.bridges.serial.frame_intake import GROUP_MAX
from gateway.mqtt.packets import Publish
from tests.support.disk.storage import until
from tests.support.nodes.serial_line import SerialLine
from tests.support.power_cut.verdict import acknowledged, frame, insist
from tests.support.processes.gateway_process import GatewayProcess
from tests.support.raw_client import Clients, RawClient

CONFIG = """
[[serial]]
port = "line"
node = "n1"
[uplink]
[[uplink.rule]]
topic = "sensors/#"
[[durability]]
topic = "sensors/#"
class = "batch(5000)"
"""

GROUP_BYTES = 32 * 1024
"""Bytes that a group may write, to the database, to the landing file and to the line; frames that
are committed one by one write 70,000."""

FIRST, SECOND = range(1, GROUP_MAX + 1), range(GROUP_MAX + 1, 2 * GROUP_MAX + 1)
THIRD = range(SECOND.stop, SECOND.stop + GROUP_MAX // 2)


@pytest.fixture
def line(tmp_path: Path) -> Iterator[SerialLine]:
    line = SerialLine(tmp_path / "line")
    line.plug()
    yield line
    line.close()


async def take(line: SerialLine, watcher: RawClient, numbers: range) -> None:
    """Send frames; return when a client has their readings, before which they were accepted."""
    for number in numbers:
        line.send(frame(number))
        assert isinstance(await watcher.receive(), Publish)


def answered(line: SerialLine) -> set[int]:
    return {acknowledged(body) for body in line.bodies()}


def bytes_written(gateway: GatewayProcess) -> int:
    assert gateway.process is not None
    lines = Path(f"/proc/{gateway.process.pid}/io").read_text().splitlines()
    return int(dict(each.split(": ") for each in lines)["wchar"])


def landed(folder: Path) -> list[int]:
    """Return what landed, once for each number: a kill may repeat a message under its number."""
    files = folder.glob("data/landing/*/[!.]*.jsonl")
    records = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    by_number = {(each["epoch"], each["stream"], each["seq"]): each for each in records}
    return sorted(json.loads(b64decode(each["payload"]))["value"] for each in by_number.values())


async def test_a_group_of_frames_is_one_commit_and_is_there_after_a_kill(
    line: SerialLine, gateway: GatewayProcess, clients: Clients
) -> None:
    watcher = await clients.connect("watcher")
    await watcher.subscribe("sensors/#")
    await until(lambda: "serial line: open" in gateway.log())
    await take(line, watcher, FIRST)
    await until(lambda: answered(line) == set(FIRST))
    before = bytes_written(gateway)
    await take(line, watcher, SECOND)
    await until(lambda: answered(line) == {*FIRST, *SECOND})
    assert bytes_written(gateway) - before < GROUP_BYTES
    await take(line, watcher, THIRD)
    gateway.kill()
    kept = answered(line)  # one or the other of the third group, where another commit came by
    line.unplug()
    line.plug()
    gateway.configure(CONFIG.partition("[[durability]]")[0])
    gateway.start()
    await insist(line, {*THIRD} - kept)
    assert gateway.stop() == 0
    assert landed(gateway.folder) == [*FIRST, *SECOND, *THIRD]
