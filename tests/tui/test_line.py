from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tui.line import (
    Line,
    at_cursor,
    beside,
    box,
    filled,
    fitted,
    gauge,
    line,
    over,
    plain,
    safe,
    spread,
    tail,
    width,
)

LINES = st.lists(st.tuples(st.text(max_size=12), st.sampled_from(["text", "head"])), max_size=4)


@given(LINES, st.integers(0, 30))
def test_a_fitted_line_has_its_width_and_nothing_that_a_terminal_obeys(
    shown: Line, cells: int
) -> None:
    found = fitted(shown, cells)
    assert width(found) == cells
    assert plain(found).isprintable()


@given(LINES, st.integers(1, 40), st.integers(0, 12))
def test_a_box_has_its_size(shown: Line, cells: int, height: int) -> None:
    found = box("title", [shown, shown], cells, height, "right")
    assert len(found) == height
    assert {width(each) for each in found} <= {cells}


def test_hostile_text() -> None:
    assert safe("a\x1b[2J\u202eb\ud800") == "a·[2J·b·"


def test_what_lies_over_lines() -> None:
    below = filled([line("温度計" * 4)] * 5, 24, 5)
    above = box("?", [line("yes")], 11, 3)
    found = over(below, above, 24)
    assert {width(each) for each in found} == {24}
    assert "yes" in plain(found[2])
    assert over(below, [], 24) == below


def test_parts_of_lines() -> None:
    assert plain(tail(line("ab", ("cdef", "head")), 3)) == "def"
    assert plain(tail(line("温度"), 1)) == " 度"
    assert plain(spread(line("left"), line("right"), 12)) == "left   right"
    assert plain(spread(line("a longer left"), line("right"), 12)) == "a lon… right"
    assert plain(spread(line("a longer left"), line("right"), 6)) == "a lon…"
    assert [style for _, style in at_cursor(line("a", ("b", "head")))] == ["text@", "head@"]
    assert plain(gauge(0.5, 4)) == "▓▓░░"
    assert plain(gauge(None, 4)) == "░░░░"
    assert plain(gauge(7, 4)) == "▓▓▓▓"
    assert [plain(each) for each in beside([line("a")], [line("b")])] == ["ab"]
    assert cell_len(plain(fitted(line("温度計"), 3))) == 3
