"""A gateway whose disk took nothing at the start waits for it, and restarts."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from gateway.app.disk import storage as no_disk
from gateway.clock import Clock
from gateway.config.load import bare
from gateway.storage.engine import database as database_module
from gateway.storage.engine.database import FILE_NAME
from gateway.storage.engine.database_file import NoDiskError, ReadOnlyError, is_writable_again
from gateway.storage.engine.free_space import Reserve
from tests.support.gateway_here import Gateway
from tests.support.ports import free_port

FULL = "no room for it"


async def started(folder: Path, stack: AsyncExitStack, *, read_only: bool = False) -> Gateway:
    kind = ReadOnlyError if read_only else NoDiskError

    def prepare(*_: object) -> None:
        raise kind(FULL)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database_module, "prepare", prepare)
        gateway = Gateway(bare(free_port()), folder, stack)
        await gateway.start()
    return gateway


def alarm(gateway: Gateway) -> str:
    message = gateway.broker.retained.get("$SYS/broker/tidegate/alarm/durability")
    assert message is not None
    return message.packets.one(0).decode()


async def test_publishers_are_refused_until_the_disk_takes_something(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(no_disk, "CHECK_SECONDS", 0.01)
    answers = iter([False, False, True])
    monkeypatch.setattr(no_disk, "is_writable_again", lambda *_: next(answers))
    async with AsyncExitStack() as stack:
        gateway = await started(tmp_path, stack)
        assert gateway.writer.full
        assert FULL in alarm(gateway)
        assert "publishers are refused" in alarm(gateway)
        await asyncio.wait_for(gateway.ended.wait(), 60)
        assert gateway.restarting
        assert not gateway.fault
        assert next(answers, None) is None


async def test_who_is_asked_to_end_does_not_start_anew(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        gateway = await started(tmp_path, stack)
        gateway.start_anew()
        gateway.end()
        assert not gateway.restarting
        gateway.start_anew()
        assert not gateway.restarting


async def test_a_read_only_file_system_is_not_waited_for(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        gateway = await started(tmp_path, stack, read_only=True)
        assert not gateway.writer.full
        assert "restart the gateway" in alarm(gateway)


def test_a_disk_takes_a_database_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / FILE_NAME
    with monkeypatch.context() as patch:
        patch.setattr(Reserve, "hold", lambda _: False)
        assert not is_writable_again(path, Clock())
        assert not path.exists()
    assert is_writable_again(path, Clock())
    assert is_writable_again(path, Clock())
    path.chmod(0o400)
    path.write_bytes(b"not a database, and longer than a header would be" * 100)
    assert not is_writable_again(path, Clock())


def test_a_folder_in_the_place_of_the_database_is_no_disk_that_takes_it(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).mkdir()
    assert not is_writable_again(tmp_path / FILE_NAME, Clock())
