import io

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from tests.tui.emulator import Screen, show
from tui.cells import Cells

CONSOLE = Console(file=io.StringIO(), color_system="truecolor", force_terminal=True)
STYLES = [Style.parse(each) for each in ("red on black", "bold blue on black", "red on white")]


def strip(cells: list[tuple[str, int]]) -> Strip:
    return Strip([Segment(text, STYLES[style]) for text, style in cells])


LINE = st.lists(st.tuples(st.sampled_from("ab │"), st.integers(0, 2)), min_size=9, max_size=9)


@given(st.lists(st.lists(LINE, min_size=3, max_size=3), min_size=2, max_size=4))
def test_a_terminal_shows_the_last_frame(frames: list[list[list[tuple[str, int]]]]) -> None:
    cells = Cells()
    screen: Screen = {}
    for frame in frames:
        show(cells.write(enumerate(map(strip, frame)), CONSOLE), screen)
    expected: Screen = {}
    for y, row in enumerate(frames[-1]):
        show(f"\x1b[{y + 1};1H" + strip(row).render(CONSOLE), expected)
    assert screen == expected


def test_only_what_differs_is_written() -> None:
    cells = Cells()
    begin = [("a", 0)] * 70
    cells.write([(0, strip(begin)), (1, strip(begin))], CONSOLE)
    assert cells.write([(0, strip(begin))], CONSOLE) == ""
    written = cells.write([(0, strip([*begin[:40], ("b", 0), *begin[41:]]))], CONSOLE)
    assert "\x1b[1;41Hb" in written
    assert len(written) < 40
    cells.forget()
    assert "a" * 70 in cells.write([(1, strip(begin))], CONSOLE).replace("\x1b[0m", "")


def test_a_line_with_wide_characters_is_written_whole() -> None:
    cells = Cells()
    cells.write([(0, strip([("温度 a", 0)]))], CONSOLE)
    assert "\x1b[1;1H温度 b" in cells.write([(0, strip([("温度 b", 0)]))], CONSOLE)
