"""What CONTRIBUTING.md says of extensions: which files each touches, and that they are few."""

import re
from pathlib import Path

from tests.support.table import table

ROOT = Path(__file__).parents[1]

MOST = 4
"""Files that an extension touches, beside tests and documentation."""

PATH = re.compile(r"`((?:gateway|tui|pipeline)/[\w/]+\.\w+|pyproject\.toml)`")


def rows() -> list[tuple[str, set[str], list[str]]]:
    """Return what is added, the files that it touches, and words that only they have."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = text.partition("## Extending it")[2].partition("\n##")[0]
    cells = [line.strip("| ").split(" | ") for line in section.splitlines() if line[:3] == "| a"]
    return [
        (what, set(PATH.findall(touch)), example.split("`")[1::2]) for what, touch, example in cells
    ]


def sources() -> dict[str, str]:
    """Return the text of every source file that is shipped, by its path."""
    files = [ROOT / "pyproject.toml"]
    for folder in ("gateway", "tui", "pipeline"):
        files += [
            each for each in (ROOT / folder).rglob("*") if each.suffix in (".py", ".pxd", ".tcss")
        ]
    return {str(each.relative_to(ROOT)): each.read_text(encoding="utf-8") for each in files}


SOURCES = sources()


@table(("what", "files", "words"), rows(), ids=[what for what, _, _ in rows()])
def test_an_extension_touches_the_files_that_it_is_said_to(
    what: str, files: set[str], words: list[str]
) -> None:
    named = {
        path
        for path, text in SOURCES.items()
        if any(re.search(rf"\b{re.escape(word)}\b", text) for word in words)
    }
    assert named == files, what
    assert len(files) <= MOST, what


def test_each_kind_of_extension_is_there() -> None:
    assert len(rows()) == 7
