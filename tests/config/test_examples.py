"""Every example of a configuration that the pages show is one."""

import re
from pathlib import Path

import pytest

from tests.support.configurations import Load
from tests.support.table import table

ROOT = Path(__file__).parents[2]

PIPELINE = {*(ROOT / "docs/use").glob("pipeline*.md")}
"""Their examples configure the pipeline (tests/pipeline)."""

PAGES = [
    ROOT / "README.md",
    *sorted({*(ROOT / "docs").rglob("*.md")} - PIPELINE),
    ROOT / "firmware" / "README.md",
]

EXAMPLES = [
    pytest.param(text, id=f"{page.relative_to(ROOT)}-{number}")
    for page in PAGES
    for number, text in enumerate(
        re.findall(r"```toml[^\n]*\n(.*?)```", page.read_text("utf-8"), re.DOTALL), 1
    )
]


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 10


@table("text", EXAMPLES)
def test_an_example_is_a_configuration(read: Load, text: str) -> None:
    read(text)
