import pytest

from tests.support.table import table
from tui.figures import MAX_FIGURES, Figures, shown


@table(
    "name, payload, value",
    [
        ("tidegate/channels/jobs/oldest_seconds", b"102.0", "1m 42s"),
        ("tidegate/storage/written_per_day", b"84300000", "84.3 MB"),
        ("tidegate/storage/card_days", b"4383", "4,383 d"),
        ("tidegate/routes/hit_rate", b"48", "48 %"),
        ("tidegate/storage/commit_ms_mean", b"1.9", "1.9 ms"),
        ("tidegate/rules/0/microseconds", b"3.4", "3.4 µs"),
        ("clients/connected", b"12345", "12,345"),
        ("tidegate/rules/0/where", b"\x1b[2J\xff", "·[2J\ufffd"),
        ("x", b"1.5", "1.5"),
    ],
)
def test_units(name: str, payload: bytes, value: str) -> None:
    assert shown(name, payload) == value


def test_figures_are_bounded_and_end_with_an_empty_message() -> None:
    figures = Figures()
    for number in range(MAX_FIGURES + 2):
        figures.apply(f"f{number}", b"1")
    assert figures.not_stored == 2
    figures.apply("f0", b"")
    assert figures.count("f0") is None
    figures.clear()
    assert not list(figures.shown())


@pytest.mark.parametrize("payload", [b"", b"1e5", b"nan", b"9" * 40, b"x"])
def test_what_is_no_number(payload: bytes) -> None:
    figures = Figures()
    figures.apply("f", payload)
    assert figures.number("f") is None


def test_the_names_of_uplinks() -> None:
    figures = Figures()
    assert figures.uplinks() == []
    figures.apply("tidegate/uplink/state", b"connected")
    assert figures.uplinks() == [""]
    figures.apply("tidegate/uplink/plant/state", b"paused")
    figures.apply("tidegate/uplink/cloud/state", b"connected")
    assert figures.uplinks() == ["cloud", "plant"]
