import pytest
from textual.theme import BUILTIN_THEMES, Theme

from tui.app import colours_of
from tui.line import AT_CURSOR
from tui.theme import ANSI, ASCII, NAMES, TIDE, TIDE_LIGHT, Palette, ascii_only

THEMES = [TIDE, TIDE_LIGHT, *BUILTIN_THEMES.values()]


def luminance(triplet: tuple[int, int, int]) -> float:
    parts = [c / 255 / 12.92 if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in triplet]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


@pytest.mark.parametrize("theme", [TIDE, TIDE_LIGHT], ids=lambda theme: theme.name)
def test_every_style_can_be_read_also_at_the_cursor(theme: Theme) -> None:
    palette = Palette(colours_of(theme))
    for name in (*NAMES, "alert", "caution", "caret"):
        for style in (palette.style(name), palette.style(name + AT_CURSOR)):
            assert style.color
            assert style.bgcolor
            one, two = (luminance(each.get_truecolor()) for each in (style.color, style.bgcolor))
            contrast = (max(one, two) + 0.05) / (min(one, two) + 0.05)
            assert contrast >= (3.0 if name != "border" else 1.5), (name, contrast)


def test_all_themes_have_every_colour() -> None:
    for theme in THEMES:
        palette = Palette(colours_of(theme))
        for name in NAMES:
            assert palette.style(name + AT_CURSOR).color


def test_sixteen_colours() -> None:
    palette = Palette(None)
    for name in (*NAMES, *ANSI):
        colour = palette.style(name).color
        assert colour is None or colour.get_truecolor() is not None
        assert colour is None or not colour.triplet


def test_ascii() -> None:
    assert "╭─●✕⣠⡀⠁▇│".translate(ASCII).isascii()


@pytest.mark.parametrize(
    ("environment", "alone"),
    [({"TERM": "linux"}, True), ({"TERM": "xterm", "LANG": "de_DE.ISO-8859-1"}, True),
     ({"TERM": "xterm", "LANG": "C.UTF-8"}, False), ({"TERM": "xterm"}, False)],
)  # fmt: skip
def test_who_has_ascii_alone(
    environment: dict[str, str], alone: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("LC_ALL", "LC_CTYPE", "LANG", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert ascii_only() is alone
