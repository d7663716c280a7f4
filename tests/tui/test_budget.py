"""What the screen costs, counted: cells written, messages, questions, modules; no times."""

import subprocess
import sys

import pytest
from rich.console import Console
from rich.segment import Segment
from textual.strip import Strip

from tests.support.silent_client import Bench
from tui import figures
from tui.app import colours_of
from tui.cells import Cells
from tui.theme import TIDE, Palette

SECONDS = 60
MOST_BYTES = 1_000
"""bytes written a second at 80 by 24"""
MOST_QUESTIONS = 2.0
"""queries a second on any screen"""


def strips(bench: Bench, palette: Palette) -> list[Strip]:

    lines = bench.session.draw(80, 24)
    return [Strip([Segment(text, palette.style(style)) for text, style in each]) for each in lines]


def busy(bench: Bench, second: int) -> None:
    """Have a second of a gateway with traffic pass: of 12 topics, one message in 1 to 6 s each."""
    bench.round(
        1_000 + second,
        publish__messages__received=812 * second + second % 3,
        publish__messages__sent=1_600 * second,
        tidegate__sys__messages_sent=20 * second,
        tidegate__bridges__readings=3 * second,
        tidegate__outbox__rows=4_912 + second,
        tidegate__outbox__oldest_seconds=7_000 + second,
        tidegate__uplink__cloud__state="connected",
        tidegate__uplink__cloud__acknowledged=118 * second,
        tidegate__uplink__plant__state="disconnected",
        tidegate__uplink__plant__waiting=4_912 + second,
        tidegate__uplink__plant__error="no route",
    )
    for number in range(12):
        if second % (number % 6 + 1) == 0:
            value = b'{"value":%d.5,"unit":"C"}' % (second * (number + 7) % 50)
            bench.hear(f"sensors/n{number % 6}/{'th'[number // 6]}", value)


@pytest.mark.uncovered
@pytest.mark.parametrize("digit", ["1", "2", "4"])
def test_bytes_written_a_second(digit: str) -> None:
    bench, palette = Bench(), Palette(colours_of(TIDE))
    bench.client.answers["topics"] = {"error": "set remembered_topics"}
    console, cells = Console(color_system="truecolor"), Cells()
    bench.press(digit)
    for second in range(10):
        busy(bench, second)
    cells.want(enumerate(strips(bench, palette)))
    cells.write(console)
    written = 0
    for second in range(10, 10 + SECONDS):
        busy(bench, second)
        cells.want(enumerate(strips(bench, palette)))
        written += len(cells.write(console).encode())
    assert written / SECONDS < MOST_BYTES


def test_questions_a_second() -> None:
    for digit in "123456":
        bench = Bench()
        for what in (
            "status",
            "topics",
            "events",
            "series",
            "clients",
            "queues",
            "rules",
            "bridges",
        ):
            bench.client.answers[what] = {"rows": [], "total": 0, "offset": 0, "figures": {}}
        bench.client.answers["readings"] = bench.client.answers["topics"]
        bench.press(digit)
        for _ in range(SECONDS * 4):
            bench.pass_time(0.25)
        assert len(bench.client.queried) / SECONDS <= MOST_QUESTIONS, digit


def test_what_is_subscribed_to() -> None:
    bench = Bench()
    assert len(bench.client.subscribed) == len(figures.WATCHED) <= 20
    assert not [each for each, _ in bench.client.subscribed if each in ("#", "$SYS/#")]
    bench.client.answers["topics"] = {"error": "set remembered_topics"}
    bench.pass_time(12)
    bench.press("2")
    bench.pass_time(12)
    sampled = [
        (each, every) for each, every in bench.client.subscribed if not each.startswith("$SYS")
    ]
    assert sampled
    assert all(every >= 1_000 for _, every in sampled)


def test_a_flood_that_cannot_be_thinned_out_is_left() -> None:
    bench = Bench()
    bench.client.answers["topics"] = {"error": "set remembered_topics"}
    bench.press("2")
    bench.pass_time(12)
    for _ in range(8):
        bench.session.state.sampled += 100_000
        bench.pass_time(3)
    assert bench.client.unsubscribed[-1] == "#"
    assert "more comes than can be sampled" in bench.screen()
    count = len(bench.client.subscribed)
    bench.pass_time(30)
    assert len(bench.client.subscribed) == count


@pytest.mark.uncovered
def test_many_topics_cost_the_gateway_one_short_answer_in_two_seconds() -> None:
    """Once all are known; those that are not in view are shown as old, not as silent."""
    bench = Bench()
    row = {"payload": "1", "size": 1, "count": 9, "interval_seconds": 1.0, "rate": 1.0}

    class Pages(dict[str, dict[str, object]]):
        """Answers each query for topics with the page that it asks for."""

        def __getitem__(self, what: str) -> dict[str, object]:
            if what != "topics":
                return super().__getitem__(what)
            request = bench.client.queried[-1][1]
            begin, limit = int(str(request.get("offset", 0))), int(str(request["limit"]))
            if request.get("state") == "silent":
                return {"rows": [], "total": 0, "offset": 0}
            names = [f"t/{n // 100:02}/{n:04}" for n in range(begin, min(begin + limit, 2_000))]
            now = round(1_000 * bench.client.now)
            found = [{**row, "topic": name, "time": now} for name in names]
            following = {"next": begin + limit} if begin + limit < 2_000 else {}
            return {"rows": found, "total": 2_000, "offset": begin, **following}

    bench.client.answers = Pages(topics={})
    bench.press("2")
    for _ in range(20):
        bench.pass_time(0.25)
        bench.screen()
    assert len(bench.session.state.topics) == 2_000
    bench.press("down", "right", "down", "right", "down", "down")
    del bench.client.queried[:]
    for _ in range(240):
        bench.pass_time(0.25)
        text = bench.screen()
    asked = [request["limit"] for what, request in bench.client.queried if what == "topics"]
    assert len(asked) <= SECONDS / 2 + SECONDS / 15 + SECONDS / 5 + 4
    assert len([limit for limit in asked if limit == 500]) <= SECONDS / 15 + 1
    assert "<5s" in text
    bench.client.answers = {}
    bench.pass_time(10)
    assert " — " in bench.screen()


def test_a_hundred_thousand_topics_are_bounded_and_told() -> None:
    bench = Bench()
    row = {"time": 1_000_000, "payload": "1", "size": 1, "count": 1, "rate": 0.1, "retained": False}
    rows = [{**row, "topic": f"t/{n // 500}/{n}"} for n in range(5_200)]
    bench.session.state.topics.tell(rows, 0.0)
    bench.client.answers["topics"] = {"total": 100_000, "offset": 0, "rows": rows[:10]}
    bench.press("2")
    bench.pass_time(12)
    text = bench.screen()
    assert len(bench.session.state.topics) == 5_000
    assert "not listed" in text


def modules(code: str) -> set[str]:
    """Return the modules that are imported by this code, in a process of its own."""
    command = [sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules)"]
    return set(subprocess.check_output(command, text=True).split())


def test_modules() -> None:
    session = {each.partition(".")[0] for each in modules("import tui.session")}
    assert not session & {"textual", "gateway", "aiohttp"}
    application = {each.partition(".")[0] for each in modules("import tui.app")}
    assert not application & {"gateway", "aiohttp", "textual_serve", "msgspec", "aiosqlite"}
