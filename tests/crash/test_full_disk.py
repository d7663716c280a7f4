"""A small file system fills up under a gateway, and is given room again."""

import asyncio
import subprocess
from collections.abc import Iterator
from contextlib import aclosing
from pathlib import Path
from random import Random

import pytest

from crashtest.numbers import Promise
from crashtest.participant import until
from crashtest.publisher import Publisher
from tests.crash.conftest import MakeGateway
from tests.support.processes.crash_gateway import (
    NOBODY_TAKES,
    compare,
    kept,
    retained,
    until_figure,
)

pytestmark = pytest.mark.mount

SMALL, LARGE = "3m", "64m"


def mount(folder: Path, *options: str) -> None:
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", ",".join(options), "tidegate", str(folder)], check=True
    )


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """Give a folder `data` that holds no more than SMALL."""
    folder = tmp_path / "data"
    folder.mkdir()
    mount(folder, f"size={SMALL}")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def refused(publisher: Publisher) -> bool:
    return all(sent.promise is Promise.REFUSED for sent in publisher.sent)


async def test_killed_on_a_full_disk_all_that_was_acknowledged_is_there(
    make_gateway: MakeGateway, small: Path, tmp_path: Path, seed: int
) -> None:
    gateway = make_gateway(NOBODY_TAKES)
    await gateway.start()
    first, second = (Publisher(name, [], Random(seed), persistent=False) for name in ("a", "b"))
    async with aclosing(first), aclosing(second):
        await first.join(gateway.port)
        busy = asyncio.create_task(first.publish_freely())
        assert await until_figure(gateway, "tidegate/storage/rejected")
        assert await retained(gateway.port, "$SYS/broker/tidegate/alarm/disk")
        await second.join(gateway.port)  # its answers wait for none of those before
        await second.publish(5)
        await until(lambda: refused(second), "a publisher is refused")
        gateway.kill()
        await busy
    assert kept(first) > 0
    assert kept(second) == 0
    assert compare(gateway, [first, second], tmp_path / "scratch") == []
