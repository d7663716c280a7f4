from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.storage import Store, open_store


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    opened = await open_store(tmp_path)
    yield opened
    await opened.close()
