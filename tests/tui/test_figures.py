"""The names that the screen reads are those that the gateway's own page promises."""

import re
from pathlib import Path

import pytest

from tests.support.broker.sys_topics import declared
from tui import figures

PAGE = Path(__file__).parents[2] / "docs" / "sys-topics.md"


def promised() -> set[str]:
    """Return the names in the page's tables, the second table's below `tidegate/`."""
    common, ours = PAGE.read_text().split("Our own, below")
    names = set(re.findall(r"`([a-z_/ ]+)`", common))
    names |= {f"tidegate/{name}" for name in re.findall(r"`([a-z_/]+)`", ours)}
    return names | declared()  # docs/bridges.md has these


@pytest.mark.parametrize("name", sorted({figures.UPTIME, *figures.COUNTS, *figures.WORDS}))
def test_a_name_is_promised(name: str) -> None:
    assert name in promised()
