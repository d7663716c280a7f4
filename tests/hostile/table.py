"""Notes what was seen of attacks, as rows of the table of docs/robustness.md."""

import os
import re
from pathlib import Path

from tests.hostile.beside import Seen

PAGE = Path(__file__).parents[2] / "docs" / "robustness.md"

HEAD = "| attack | slowest answer to the bystander, ms | memory, MiB |\n| --- | --: | --: |\n"


def note(text: str, seen: Seen) -> None:
    """Print a row; put it into the page's table, in place of the attack's last, if asked to."""
    text = " ".join(text.split()).rstrip(".")
    row = f"| {text} | {seen.slowest_ms:.0f} | {seen.before_mib:.0f} to {seen.most_mib:.0f} |\n"
    print(row, end="")
    if os.environ.get("TIDEGATE_HOSTILE_WRITE"):
        page = PAGE.read_text(encoding="utf-8")
        page = re.sub(rf"\| {re.escape(text)} \|.*\n", "", page)
        end = page.index(HEAD) + len(HEAD)
        while page[end] == "|":
            end = page.index("\n", end) + 1
        PAGE.write_text(page[:end] + row + page[end:], encoding="utf-8")
