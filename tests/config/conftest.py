from pathlib import Path

import pytest

from gateway.config.configuration import Configuration
from gateway.config.load import load
from tests.support.configurations import Load


@pytest.fixture
def read(tmp_path: Path) -> Load:
    """Give a function that writes a configuration and reads it."""

    def written(text: str) -> Configuration:
        path = tmp_path / "gateway.toml"
        path.write_text(text, encoding="utf-8")
        return load(path)

    return written
