"""Bytes, sectors and pages of database, log and index go wrong at random places: it starts."""

import os
import shutil
from pathlib import Path
from random import Random, SystemRandom

import pytest

from gateway.storage.engine.database import FILE_NAME
from tests.support.disk.damaged_database import PAGE, fill
from tests.support.disk.storage import open_store

DAMAGES = int(os.environ.get("TIDEGATE_DAMAGES", "12"))

SECTOR = 512

INDEX_BYTES = 32_768
"""Of the index of the log, which a killed gateway leaves too: here it is made up."""


def flip(content: bytearray, random: Random) -> None:
    content[random.randrange(len(content))] ^= 1 << random.randrange(8)


def several(content: bytearray, random: Random) -> None:
    for _ in range(random.randint(2, 200)):
        content[random.randrange(len(content))] = random.randrange(256)


def sector(content: bytearray, random: Random) -> None:
    start = random.randrange(len(content)) // SECTOR * SECTOR
    length = min(SECTOR, len(content) - start)
    content[start : start + length] = random.choice([bytes(length), random.randbytes(length)])


def zeroed_page(content: bytearray, random: Random) -> None:
    start = random.randrange(len(content)) // PAGE * PAGE
    length = min(PAGE, len(content) - start)
    content[start : start + length] = bytes(length)


def swapped_pages(content: bytearray, random: Random) -> None:
    pages = range(0, len(content) - PAGE + 1, PAGE)
    if len(pages) < 2:
        return
    one, other = random.sample(pages, 2)
    first, second = content[one : one + PAGE], content[other : other + PAGE]
    content[one : one + PAGE], content[other : other + PAGE] = second, first


def cut(content: bytearray, random: Random) -> None:
    del content[random.randrange(len(content)) :]


DAMAGE = [flip, several, sector, zeroed_page, swapped_pages, cut]

FILES = [FILE_NAME, FILE_NAME, FILE_NAME + "-wal", FILE_NAME + "-shm"]


async def start_on(folder: Path) -> str:
    """Start twice, the second time on what the first made of it; return what went wrong."""
    for start in ("first", "second"):
        try:
            store = await open_store(folder)
            await store.close()
        except Exception as error:  # noqa: BLE001 - every one is told with the others
            return f"the {start} start: {type(error).__name__}: {error}"
    return ""


@pytest.mark.uncovered
# 500 take minutes
@pytest.mark.timeout(max(120, DAMAGES * 2))
async def test_it_starts_whatever_was_damaged(tmp_path: Path) -> None:
    (tmp_path / "filled").mkdir()
    image = await fill(tmp_path / "filled", 120)
    seed = int(os.environ.get("TIDEGATE_SEED", SystemRandom().randrange(1_000_000)))
    failures = []
    for number in range(seed, seed + DAMAGES):
        random = Random(number)
        folder = shutil.copytree(image, tmp_path / "damaged")
        name, damage = random.choice(FILES), random.choice(DAMAGE)
        file = folder / name
        content = bytearray(file.read_bytes() if file.exists() else random.randbytes(INDEX_BYTES))
        damage(content, random)
        file.write_bytes(content)
        if fault := await start_on(folder):
            failures.append(f"TIDEGATE_SEED={number}, {damage.__name__} of {name}: {fault}")
        shutil.rmtree(folder)
    assert not failures
