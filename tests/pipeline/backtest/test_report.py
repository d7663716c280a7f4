"""The report of a back test as a browser draws it."""

import re
import shutil
import subprocess
from datetime import timedelta
from pathlib import Path

import pytest
from PIL import Image

from pipeline.backtest import drawing, result
from pipeline.backtest.fold import Sums

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
NO_BROWSER = "no chromium in PATH: apt-get install chromium"
WIDTH, HEIGHT = 900, 1600

DRAWN = {
    "bytes before": (0xC8, 0xCD, 0xD3),
    "bytes after": (0x2B, 0x6C, 0xB0),
    "raw curve": (0x9A, 0xA3, 0xAD),
    "reconstructed curve": (0xC0, 0x56, 0x21),
}
"""The colours of what the page draws."""


def page() -> str:
    days = [
        Sums("barn", "sensors/n1/t", f"2026-11-{day:02}", 100, 40 + day, 9000, 4000 + 90 * day,
             3000, 1500, 60_000, 0.4, 3, 1)
        for day in range(1, 9)
    ]  # fmt: skip
    # every piece of the reconstructed curve lies beside the raw one
    points = [(n * 1000, n % 40 / 2.0, n % 8 == 0) for n in range(400)]
    rule = "payload.value > 30 AND topic <> '<script>'"
    figures = result.figures(days, 1.0)
    worst = result.Worst("barn: sensors/n1/t", "°C", 39_000, points)
    return result.as_page(rule, "payload.value > 40", figures, worst)


TICKS = [
    ((0.0, 10.0), [0, 2, 4, 6, 8, 10]),
    ((20.0, 20.0), [10, 15, 20, 25, 30]),
    ((-0.31, 0.2), [-0.4, -0.2, 0, 0.2]),
    ((0.0, 1234567.0), [0, 500_000, 1_000_000, 1_500_000]),
]


@pytest.mark.parametrize(("span", "ticks"), TICKS)
def test_values_have_round_ticks_around_them(span: tuple[float, float], ticks: list[float]) -> None:
    assert drawing.value_ticks(*span) == pytest.approx(ticks)


def test_times_have_round_ticks_within_them() -> None:
    begin = 1_763_740_000_000  # 15:46:40
    marks, step = drawing.time_ticks(begin, begin + 3_600_000)
    assert (len(marks), step) == (4, timedelta(minutes=15))
    assert marks[0] == begin + 800_000  # 16:00
    assert drawing.time_ticks(begin, begin) == ([begin], timedelta(seconds=1))


def test_drawings_have_axes_units_dates_and_a_legend() -> None:
    shown = re.findall(r"<text[^>]*>([^<]*)</text>", page())
    assert {"value in °C", "bytes a day", "day (UTC)", "2026-11-01"} <= set(shown)
    assert {"every reading", "what a reader has", "all messages", "would be sent"} <= set(shown)
    assert "time (UTC), from 1970-01-01 00:00" in shown
    assert "largest error, 01-01 00:00:39 UTC" in shown
    assert {"0", "5", "10", "15", "20", "01-01 00:05"} <= set(shown)
    assert "no readings" in drawing.curves([], "", None)


def browse(file: Path, *options: str) -> str:
    assert BROWSER is not None
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
               f"--user-data-dir={file.parent / 'profile'}", *options, file.as_uri()]  # fmt: skip
    done = subprocess.run(command, capture_output=True, check=True, text=True, timeout=60)
    return done.stdout


def test_topics_do_not_move_the_terminal_s_cursor() -> None:
    sums = Sums("barn", "a\x1b[2J\0", "2026-11-01", 1, 1, 9, 9, 9, 9, 0, None, 0, 0)
    text = result.as_text("topic <> '\x1b'", result.figures([sums], 1.0))
    assert text.replace("\n", "").isprintable()
    assert "barn: a?[2J?: 1 of 1 sent" in text


@pytest.mark.uncovered
@pytest.mark.skipif(BROWSER is None, reason=NO_BROWSER)
def test_a_browser_shows_bars_curves_and_missed_alarms(tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(page(), encoding="utf-8")
    picture = tmp_path / "report.png"
    browse(file, f"--screenshot={picture}", f"--window-size={WIDTH},{HEIGHT}", "--hide-scrollbars")
    with Image.open(picture) as image:
        counted = image.convert("RGB").getcolors(WIDTH * HEIGHT) or []
    seen = {colour for count, colour in counted if count >= 20}
    assert {name for name, colour in DRAWN.items() if colour not in seen} == set()
    text = browse(file, "--dump-dom")
    assert "8 of 24 alarms would not have been sent." in text
    assert "&lt;script&gt;" in text
    assert "<script" not in text
