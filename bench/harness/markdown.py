"""Tables, and the sections of bench/README.md that commands write anew."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table whose columns but the first are aligned to the right."""
    lines = [list(head), ["---", *["--:"] * (len(head) - 1)], *map(list, rows)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def replace_section(file: Path, name: str, text: str) -> None:
    """Put the text between the markers `<!-- name -->` and `<!-- /name -->` of the file.

    Raises ValueError when the file does not have them exactly once.
    """
    before = file.read_text(encoding="utf-8")
    section = re.compile(
        rf"(<!-- {re.escape(name)} -->\n).*?(<!-- /{re.escape(name)} -->)", re.DOTALL
    )
    inner = text.strip("\n")  # not spaces: an indented first line is a command
    after, count = section.subn(lambda marks: f"{marks[1]}{inner}\n{marks[2]}", before)
    if count != 1:
        raise ValueError(f"{file} has the markers of {name!r} {count} times, not once")
    file.write_text(after, encoding="utf-8")
