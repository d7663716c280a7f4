"""Tasks beside everything else."""

import asyncio

import pytest

from gateway.background import background


async def _fail() -> None:
    raise ValueError("no such attribute")


async def test_an_error_that_ends_one_is_logged_at_once(caplog: pytest.LogCaptureFixture) -> None:
    task = background(_fail())
    await asyncio.wait([task])
    await asyncio.sleep(0)
    assert "unexpected error: _fail has ended" in caplog.text
    assert "ValueError: no such attribute" in caplog.text


async def test_its_end_is_not(caplog: pytest.LogCaptureFixture) -> None:
    tasks = [background(asyncio.sleep(0)), background(asyncio.sleep(60))]
    await tasks[0]
    tasks[1].cancel()
    await asyncio.wait(tasks)
    await asyncio.sleep(0)
    assert not caplog.text
