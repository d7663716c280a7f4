import logging
from collections.abc import Iterator

import pytest

from gateway.settings.log import LogSettings
from gateway.telemetry.logs import set_levels


@pytest.fixture(autouse=True)
def levels_of_parts() -> Iterator[None]:
    """Leave the log's levels as they were: a gateway that reloads in this process sets them."""
    root = logging.getLogger()
    before = root.level
    yield
    if root.level != before:
        set_levels(LogSettings())
        root.setLevel(before)
