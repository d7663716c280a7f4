"""The table of figures in docs/sys-topics.md."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "sys-topics.md"


def documented() -> set[str]:
    """Return the names below $SYS/broker/ in the first column of docs/sys-topics.md."""
    text = PAGE.read_text(encoding="utf-8")
    known, _, own = text.partition("Our own, below `$SYS/broker/tidegate/`:")
    return {
        prefix + name
        for part, prefix in ((known, ""), (own, "tidegate/"))
        for row in part.splitlines()
        if row.startswith("| `")
        for name in re.findall(r"`([^`]+)`", row.split("|")[1])
    }
