"""The six stories of `tools/ways.py` pass through no more of the gateway than they did."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.support.compiled import not_compiled

pytestmark = [
    pytest.mark.uncovered,
    pytest.mark.mosquitto,
    pytest.mark.skipif(not not_compiled(), reason="compiled functions call no profile hook"),
]

TOOL = Path(__file__).parents[1] / "tools/ways.py"

MOST = {  # files, calls
    "local": (18, 75),
    "filtered": (26, 100),
    "away": (37, 165),
    "forwarded": (39, 151),
    "subscribe": (42, 222),
    "serial": (66, 430),  # 60 and 364 on a quiet machine: timers run beside it
}
"""What each story took when it was measured last. Lower a figure with the change that makes it
lower; a change that raises one says why."""

TRIES = 3
"""Measurements of a story that may be too many: on a busy machine a timer runs in its middle."""


@pytest.fixture(scope="module")
def ways() -> ModuleType:
    spec = importlib.util.spec_from_file_location("ways", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["ways"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("story", MOST)
def test_a_story_passes_through_no_more_files_and_calls(ways: ModuleType, story: str) -> None:
    files, calls = MOST[story]
    for _ in range(TRIES):
        way = getattr(ways, story)()
        if way.files <= files and way.total <= calls:
            break
    assert way.files <= files, sorted({name.partition(":")[0] for name in way.calls})
    assert way.total <= calls, way.calls
    assert way.total >= calls // 2, "lower the figure"


def test_each_story_has_its_figures(ways: ModuleType) -> None:
    assert set(MOST) == {story.__name__ for story in ways.STORIES.values()}
