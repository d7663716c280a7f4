"""A measured figure of a page stands beside its command and its date."""

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from tests.support.table import table

ROOT = Path(__file__).parents[1]
DECISIONS = ROOT / "docs/understand/decisions"
PAGES = sorted({*ROOT.glob("docs/operate/*.md"), *ROOT.glob("docs/understand/**/*.md")})

COST = r"µs|ns|CPU seconds?|s of CPU|(?:messages|rows|lines|deliveries)(?:/s| a (?:CPU )?second)"
SIZE = r"ms|MiB"
"""Units of limits, too: in decisions, which name few limits, they are of measurements."""
CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"`[^`]*\b(?:bench\.|make |pytest |tests/|python )[^`]*`")
DATE = re.compile(r"\b20\d\d-\d\d-\d\d\b")
LINK = re.compile(r"bench/README\.md#|bench/attacks\.md|#what-was-measured\b")
"""Of a table that has the command and the date."""
LOST = re.compile(r"\ba\s+script\s+that\s+was\s+not\s+kept\b")
"""What a decision says of a figure that nobody can measure again."""


def without_source(text: str, *, dated: bool = False) -> Iterator[str]:
    """Yield each paragraph, list or table with a figure, if it and its neighbours lack the source.

    A page of decisions is `dated` as a whole.
    """
    unit = rf"(?:{COST}|{SIZE})\b" if dated else rf"(?:{COST})\b"
    figure = re.compile(rf"\d {unit}|\A\s*\|.*(?<!\w){unit}.*\|\n\| -")
    for section in re.split(r"^#+ ", CODE.sub("", text), flags=re.MULTILINE):
        blocks = ["", *re.split(r"\n\s*\n", section), ""]
        for (before, block), (_, after) in pairwise(pairwise(blocks)):
            near = f"{before}\n{block}\n{after}"
            command = COMMAND.search(near) or (dated and LOST.search(near))
            named = LINK.search(near) or (command and (dated or DATE.search(near)))
            if figure.search(block) and not named:
                yield block


@table("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_figure_has_its_command_and_its_date(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert [*without_source(text, dated=page.parent == DECISIONS)] == []


def test_the_pages_have_figures() -> None:
    bare = [re.sub(r"`[^`]*`|\(.*?\)", "", page.read_text(encoding="utf-8")) for page in PAGES]
    assert sum(len([*without_source(text, dated=True)]) for text in bare) > 30


@table(
    ("text", "dated", "found"),
    [
        ("A message costs 12 µs.", False, 1),
        ("A message costs 12 µs (`python -m bench.where`).", False, 1),
        ("A message costs 12 µs, 2026-11-30.", False, 1),
        ("A message costs 12 µs (`python -m bench.where`, 2026-11-30).", False, 0),
        ("A message costs 12 µs ([table](../bench/README.md#channels)).", False, 0),
        ("A message costs 12 µs (`python -m bench.where`).", True, 0),
        ("A message costs 12 µs, by a script that was not kept.", True, 0),
        ("A message costs 12 µs, 2026-11-30, by a script that was not kept.", False, 1),
        ("It takes 8,400 rows/s.\n\n`make bench`, 2026-11-30", False, 0),
        ("It takes 8,400 rows/s.\n\nA rule.\n\n`make bench`, 2026-11-30", False, 1),
        ("It takes 8,400 rows/s.\n\n## Elsewhere\n\n`make bench`, 2026-11-30", False, 1),
        ("| client | µs a row |\n| --- | --: |\n| paho | 143 |", False, 1),
        (
            "| client | µs a row |\n| --- | --: |\n| paho | 143 |\n\n`make bench`, 2026-11-30",
            False,
            0,
        ),
        ("| exit status | means |\n| --- | --- |\n| 0 | well |", False, 0),
        ("It holds 4 MiB.", True, 1),
        ("A file has 8 MiB at most, and closes after 500 ms.", False, 0),
        ("```\n12 µs\n```", False, 0),
    ],
)
def test_what_is_a_figure_without_its_source(text: str, dated: bool, found: int) -> None:
    assert len([*without_source(text, dated=dated)]) == found
