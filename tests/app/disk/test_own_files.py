"""Who deletes, renames or truncates the files of a running gateway loses nothing acknowledged."""

import asyncio
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from crashtest.client import Client
from gateway.app.disk import own_files
from gateway.app.disk.data_folder import DataFolder
from gateway.app.start import serve
from gateway.config.load import bare
from gateway.mqtt.packets import Connect, PubAck, Publish
from gateway.storage.engine.database import FILE_NAME
from tests.support.disk.storage import until
from tests.support.ports import free_port
from tests.support.processes.crash_gateway import retained


class Running:
    """A gateway that may start anew by itself; `starts` counts how often it was ready."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.port = free_port()
        self.starts = 0
        self._serving = asyncio.create_task(self._serve())

    async def until_started(self, times: int) -> None:
        async with asyncio.timeout(60):
            while self.starts < times:
                if self._serving.done():
                    self._serving.result()
                await asyncio.sleep(0.01)

    async def stop(self) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.wait_for(self._serving, 60)

    async def publish(self, *topics: str) -> list[str]:
        """Return the topics whose retained messages are acknowledged."""
        client = await Client.connect(self.port, Connect("publisher"))
        for number, topic in enumerate(topics, 1):
            client.send(Publish(topic, topic.encode(), 1, retain=True, packet_id=number))
        acknowledged: list[str] = []
        async with asyncio.timeout(60):
            async for packet in client.packets():
                if isinstance(packet, PubAck) and packet.reason_code < 0x80:
                    acknowledged.append(topics[packet.packet_id - 1])
                if isinstance(packet, PubAck) and len(acknowledged) == len(topics):
                    break
        client.close()
        return acknowledged

    async def _serve(self) -> None:
        await serve(bare(self.port), self.data, on_ready=self._started)

    def _started(self) -> None:
        self.starts += 1


def delete(data: Path) -> None:
    (data / FILE_NAME).unlink()


def delete_log(data: Path) -> None:
    (data / f"{FILE_NAME}-wal").unlink()


def delete_all(data: Path) -> None:
    for each in data.glob(f"{FILE_NAME}*"):
        each.unlink()


def rename(data: Path) -> None:
    (data / FILE_NAME).rename(data / "elsewhere.db")


def replace(data: Path) -> None:
    shutil.copy(data / FILE_NAME, data / "copy")
    (data / "copy").rename(data / FILE_NAME)


def delete_folder(data: Path) -> None:
    shutil.rmtree(data)


def truncate(data: Path) -> None:
    os.truncate(data / FILE_NAME, 0)


def truncate_a_little(data: Path) -> None:
    path = data / FILE_NAME
    os.truncate(path, path.stat().st_size - 512)


HARM = [delete, delete_log, delete_all, rename, replace, delete_folder, truncate, truncate_a_little]


@pytest.mark.uncovered
@pytest.mark.parametrize("harm", HARM)
async def test_all_that_was_acknowledged_is_there_again(
    tmp_path: Path, harm: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_files, "REPORT_SECONDS", 0.05)
    gateway = Running(tmp_path / "data")
    await gateway.until_started(1)
    kept = await gateway.publish("a", "b")
    assert kept == ["a", "b"]
    harm(gateway.data)
    kept += await gateway.publish("c")
    await gateway.until_started(2)
    assert "tidegate.db" in await retained(gateway.port, "$SYS/broker/tidegate/alarm/database")
    await gateway.stop()
    again = Running(gateway.data)
    await again.until_started(1)
    for topic in kept:
        assert await retained(again.port, topic) == topic, topic
    assert await again.publish("d") == ["d"]
    assert again.starts == 1
    await again.stop()


async def test_a_stop_right_behind_saves_them_too(tmp_path: Path) -> None:
    gateway = Running(tmp_path / "data")
    await gateway.until_started(1)
    await gateway.publish("a")
    delete_all(gateway.data)
    await gateway.stop()
    again = Running(gateway.data)
    await again.until_started(1)
    assert await retained(again.port, "a") == "a"
    await again.stop()


async def test_nothing_is_put_into_a_folder_that_another_gateway_uses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It was renamed, and another gateway began in its place."""
    monkeypatch.setattr(own_files, "RETRY_SECONDS", 0.05)
    gateway = Running(tmp_path / "data")
    await gateway.until_started(1)
    await gateway.publish("a")
    gateway.data.rename(tmp_path / "moved")
    other = DataFolder(gateway.data)
    (gateway.data / FILE_NAME).write_bytes(b"of the other")
    await until(lambda: "is in use by process" in caplog.text)
    await gateway.stop()
    assert (gateway.data / FILE_NAME).read_bytes() == b"of the other"
    other.close()
    again = Running(tmp_path / "moved")
    await again.until_started(1)
    assert await retained(again.port, "a") == "a"
    await again.stop()


async def test_nothing_is_acknowledged_into_a_truncated_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_files, "REPORT_SECONDS", 0.05)
    gateway = Running(tmp_path / "data")
    await gateway.until_started(1)
    await gateway.publish("a")
    os.truncate(gateway.data / f"{FILE_NAME}-wal", 0)
    assert await gateway.publish("b") == []
    await gateway.until_started(2)
    assert await gateway.publish("b") == ["b"]
    await gateway.stop()
    again = Running(gateway.data)
    await again.until_started(1)
    assert await retained(again.port, "b") == "b"
    await again.stop()
