import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.settings.durability import ALLOWED, commit_within, durability
from tests.support.table import table

CLASSES = [
    ("commit", 0.0),
    ("memory", None),
    ("batch(1)", 0.001),
    ("batch(50)", 0.05),
    ("batch(120000)", 120.0),
]

MISTAKES: list[object] = [
    "",
    "Commit",
    "batch",
    "batch()",
    "batch(0)",
    "batch(050)",
    "batch(120001)",
    "batch(-1)",
    "batch(1.5)",
    "batch(50ms)",
    "batch(50) ",
    "batch(٣)",
    "batch( 5)",
    50,
    None,
    True,
]


@pytest.mark.parametrize(("text", "within"), CLASSES)
def test_a_class_says_how_long_a_commit_may_wait(text: str, within: float | None) -> None:
    assert durability(text) == text
    assert commit_within(text) == within


@table("value", MISTAKES)
def test_what_is_no_class(value: object) -> None:
    with pytest.raises(ValueError, match="commit") as raised:
        durability(value)
    assert str(raised.value) == ALLOWED


@given(st.integers(1, 120_000))
def test_every_window_in_milliseconds(window: int) -> None:
    assert commit_within(f"batch({window})") == pytest.approx(window / 1000)
