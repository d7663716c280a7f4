import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from tests.tui.emulator import Screen, show
from tui.cells import LEAST, MOMENT, Cells, Pace

CONSOLE = Console(file=io.StringIO(), color_system="truecolor", force_terminal=True)
STYLES = [Style.parse(each) for each in ("red on black", "bold blue on black", "red on white")]


def written(cells: Cells, *lines: Strip, at: int = 0) -> str:
    """Return what shows these lines."""
    cells.want(enumerate(lines, at))
    return cells.write(CONSOLE)


def strip(cells: list[tuple[str, int]]) -> Strip:
    return Strip([Segment(text, STYLES[style]) for text, style in cells])


LINE = st.lists(st.tuples(st.sampled_from("ab │"), st.integers(0, 2)), min_size=9, max_size=9)


@given(st.lists(st.lists(LINE, min_size=3, max_size=3), min_size=2, max_size=4))
def test_a_terminal_shows_the_last_frame(frames: list[list[list[tuple[str, int]]]]) -> None:
    cells = Cells()
    screen: Screen = {}
    for frame in frames:
        show(written(cells, *map(strip, frame)), screen)
    expected: Screen = {}
    for y, row in enumerate(frames[-1]):
        show(f"\x1b[{y + 1};1H" + strip(row).render(CONSOLE), expected)
    assert screen == expected


def test_only_what_differs_is_written() -> None:
    cells = Cells()
    begin = [("a", 0)] * 70
    written(cells, strip(begin), strip(begin))
    assert written(cells, strip(begin)) == ""
    shown = written(cells, strip([*begin[:40], ("b", 0), *begin[41:]]))
    assert "\x1b[1;41Hb" in shown
    assert len(shown) < 40
    cells.forget()
    assert "a" * 70 in written(cells, strip(begin), at=1).replace("\x1b[0m", "")


def test_a_line_with_wide_characters_is_written_whole() -> None:
    cells = Cells()
    written(cells, strip([("温度 a", 0)]))
    assert "\x1b[1;1H温度 b" in written(cells, strip([("温度 b", 0)]))


def test_lines_wait_and_those_of_a_key_go_first() -> None:
    cells = Cells()
    line = [strip([(letter * 50, 0)]) for letter in "abcdef"]
    cells.want(enumerate(line))
    first = cells.write(CONSOLE, 160)
    assert "a" * 50 in first
    assert "c" not in first
    cells.want([(5, line[0])], first=True)
    second = cells.write(CONSOLE, 1)
    assert "\x1b[6;1H" + "a" * 50 in second
    assert "\x1b[3;1H" in cells.write(CONSOLE, 1)
    cells.want([(3, strip([]))])
    cells.want([(3, line[3])])
    assert "d" * 50 in cells.write(CONSOLE)
    assert not cells.behind
    cells.want([(0, line[1])])
    cells.want([(0, line[0])])
    assert not cells.behind


def test_a_slow_terminal_is_written_less_at_a_time() -> None:
    pace = Pace()
    pace.wrote(0, 10.0)
    assert not pace.ready(10.1)
    pace.answered(10.01)
    pace.wrote(1_024, 20.0)
    assert not pace.ready(20.2)
    pace.answered(20.01 + 1_024 / 2_400)
    assert pace.budget == pytest.approx(2_400 * MOMENT, abs=1)
    pace.wrote(360, 30.0)
    pace.answered(30.01)
    assert pace.budget == pytest.approx(4 * 2_400 * MOMENT, abs=4)
    pace.answered(31)
    pace.wrote(1_000, 40.0)
    pace.answered(41.9)
    assert pace.budget == LEAST


def test_a_terminal_that_does_not_answer_is_written_to() -> None:
    pace = Pace()
    pace.wrote(0, 10.0)
    assert pace.ready(10.5)
    assert not pace.answers
    pace.wrote(100_000, 11.0)
    assert pace.ready(11.0)


def test_an_answer_that_is_lost_is_not_waited_for() -> None:
    pace = Pace()
    pace.wrote(0, 10.0)
    pace.answered(10.01)
    pace.wrote(100, 11.0)
    assert pace.ready(20.0)
    assert pace.answers
