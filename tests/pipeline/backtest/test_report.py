"""The report of a back test as a browser draws it."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from PIL import Image

from pipeline.backtest import result
from pipeline.backtest.fold import Sums

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
NO_BROWSER = "no chromium in PATH: apt-get install chromium"
WIDTH, HEIGHT = 900, 1600

DRAWN = {
    "bytes before": (0xC8, 0xCD, 0xD3),
    "bytes after": (0x2B, 0x6C, 0xB0),
    "raw curve": (0x9A, 0xA3, 0xAD),
    "reconstructed curve": (0xC0, 0x56, 0x21),
    "worst moment": (0x9B, 0x2C, 0x2C),
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
    worst = result.Worst("barn: sensors/n1/t", "°C", 39_000, points, 3.5)
    return result.as_page(rule, "payload.value > 40", figures, worst)


def browse(file: Path, *options: str) -> str:
    assert BROWSER is not None
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
               "--host-resolver-rules=MAP * ~NOTFOUND",
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
    waits = "--virtual-time-budget=20000"
    browse(
        file,
        waits,
        f"--screenshot={picture}",
        f"--window-size={WIDTH},{HEIGHT}",
        "--hide-scrollbars",
    )
    with Image.open(picture) as image:
        counted = image.convert("RGB").getcolors(WIDTH * HEIGHT) or []
    seen = {colour for count, colour in counted if count >= 20}
    assert {name for name, colour in DRAWN.items() if colour not in seen} == set()
    text = browse(file, "--dump-dom", "--virtual-time-budget=20000")
    assert "8 of 24 alarms would not have been sent." in text
    shown = set(re.findall(r"<text[^>]*>([^<]*)</text>", text))
    assert {"bytes a day", "day (UTC)", "value in °C", "time (UTC)"} <= shown
    assert {"all messages", "would be sent", "every reading", "what a reader has"} <= shown
    assert "largest error 3.5 °C, 1970-01-01 00:00:39 UTC" in shown
    assert any("Nov" in each and "2026" in text for each in shown)
    assert "&lt;script&gt;" in text
    assert "Download plot" in text
    assert 'data-title="Share chart' not in text  # which would send it to a service
