"""Notes what was seen of attacks, as rows of the table of bench/attacks.md."""

import os
import re
from pathlib import Path

from gateway import compiled
from tests.hostile.beside import Seen

PAGE = Path(__file__).parents[2] / "bench/attacks.md"

PACKAGE = Path(compiled.FOLDER)


COMPILED = any(PACKAGE.glob("_compiled.*.so"))
"""Whether the gateway that is attacked is, rather than plain Python."""

HEAD = (
    "| attack | slowest answer to the bystander, ms: plain | compiled | memory, MiB |\n"
    "| --- | --: | --: | --: |\n"
)


def note(text: str, seen: Seen) -> None:
    """Print a row; put it into the page's table, in place of the attack's last, if asked to."""
    text = " ".join(text.split()).rstrip(".")
    page = PAGE.read_text(encoding="utf-8")
    found = re.search(rf"^\| {re.escape(text)} \| (.*) \| (.*) \| .* \|\n", page, re.MULTILINE)
    figures = ["-", "-"] if found is None else list(found.groups())
    figures[COMPILED] = f"{seen.slowest_ms:.0f}"
    row = f"| {text} | {' | '.join(figures)} | {seen.before_mib:.0f} to {seen.most_mib:.0f} |\n"
    print(row, end="")
    if os.environ.get("TIDEGATE_HOSTILE_WRITE"):
        if found is not None:
            page = page.replace(found[0], "")
        end = page.index(HEAD) + len(HEAD)
        while page[end] == "|":
            end = page.index("\n", end) + 1
        PAGE.write_text(page[:end] + row + page[end:], encoding="utf-8")
