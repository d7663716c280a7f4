"""Every screen of a recorded gateway, at two sizes and in both themes, as lines of text.

What is drawn is compared with the files in `snapshots`. After a change that is meant, look at what
`TIDEGATE_SNAPSHOTS=write pytest tests/tui/test_snapshots.py` makes of them.
"""

import html
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.processes.screen import press, shown
from tui.app import TidegateApp
from tui.prefs import Preferences
from tui.record import Replay
from tui.screens import SCREENS
from tui.theme import TIDE, TIDE_LIGHT

pytestmark = pytest.mark.uncovered

FOLDER = Path(__file__).with_name("snapshots")
SIZES = ((80, 24), (120, 36))
TEXT = re.compile(r'<text [^>]*x="([\d.]+)"[^>]*clip-path="url\(#[^"]*line-(\d+)\)">([^<]*)</text>')
CELL = 12.2
"""the width of a cell in Rich's SVG"""


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have times shown as UTC wherever the test runs."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def lines_of(svg: str, height: int) -> str:
    """Return the text in a picture, line by line."""
    rows = [""] * height
    for x, line, text in TEXT.findall(svg):
        column = round(float(x) / CELL)
        rows[int(line)] = rows[int(line)].ljust(column) + html.unescape(text).replace("\xa0", " ")
    return "".join(f"{row.rstrip()}\n" for row in rows)


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("theme", [TIDE.name, TIDE_LIGHT.name])
async def test_screens(theme: str, size: tuple[int, int], tmp_path: Path) -> None:
    replay = Replay(FOLDER / "session.jsonl")
    replay.elapsed = 3_600.0
    preferences = Preferences(tmp_path / "tui.json")
    preferences.theme = theme
    application = TidegateApp(replay, preferences)
    async with application.run_test(size=size) as pilot:
        await shown(pilot, "barn ● up", "thing")
        assert application.theme == theme
        for digit, screen in enumerate(SCREENS, 1):
            await press(pilot, str(digit))
            await shown(pilot, f"[{digit} {screen.title}")
            for _ in range(8):  # what the screen asks for is answered in the next look
                application._tick()
            application._draw()
            text = lines_of(application.export_screenshot(), size[1])
            file = FOLDER / f"{screen.title.lower()}-{size[0]}x{size[1]}.txt"
            if os.environ.get("TIDEGATE_SNAPSHOTS") == "write":
                file.write_text(text, encoding="utf-8")
            assert text == file.read_text(encoding="utf-8"), file.name
