import pytest

from tui.every_figure import MAX_FIGURES, EveryFigure


def shown(**figures: str) -> dict[str, dict[str, str]]:
    every = EveryFigure()
    for name, value in figures.items():
        every.take("tidegate/" + name.replace("__", "/"), value.encode())
    return {part: dict(pairs) for part, pairs in every.parts()}


def test_figures_stand_below_their_parts() -> None:
    assert shown(outbox__rows="3", storage__commits="12345", outbox__bytes="2048") == {
        "outbox": {"bytes": "2.0 kB", "rows": "3"},
        "storage": {"commits": "12,345"},
    }


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("storage__written_per_day", "84300000", "84.3 MB"),
        ("storage__card_days", "4000", "4,000 d"),
        ("storage__stretch_percent", "40", "40 %"),
        ("outbox__oldest_seconds", "131", "2m 11s"),
        ("clock__uncertainty_ms", "1500", "1,500 ms"),
        ("rules__0__topic", "sensors/#", "sensors/#"),
        ("rules__0__bytes_saved", "5000", "5.0 kB"),
        ("uplink__error", "\x1b[2J", "·[2J"),
    ],
)
def test_the_name_says_the_unit(name: str, value: str, text: str) -> None:
    (figures,) = shown(**{name: value}).values()
    assert list(figures.values()) == [text]


def test_what_has_its_own_place_or_is_no_figure_is_left_out() -> None:
    every = EveryFigure()
    for name in ("tidegate/log", "tidegate/alarm/disk", "tidegate/alone", "uptime", "tidegate//"):
        every.take(name, b"1")
    assert list(every.parts()) == []


def test_an_empty_payload_ends_a_figure() -> None:
    every = EveryFigure()
    every.take("tidegate/a/b", b"1")
    every.take("tidegate/a/b", b"")
    every.take("tidegate/a/c", b"")
    assert list(every.parts()) == []


def test_figures_are_bounded() -> None:
    every = EveryFigure()
    for number in range(MAX_FIGURES + 2):
        every.take(f"tidegate/a/{number:05}", b"1")
    every.take("tidegate/a/00000", b"2")
    ((_, figures),) = every.parts()
    assert len(figures) == MAX_FIGURES
    assert figures[0] == ("00000", "2")
    assert every.left_out == 2
    every.clear()
    assert (list(every.parts()), every.left_out) == ([], 0)
