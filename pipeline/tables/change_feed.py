"""Delta's change data feed: which rows each version of a table inserted and deleted.

Readers find them in the log: a file that a commit adds has inserted rows, one that it removes has
deleted ones. So the feed needs no files of its own, only the property by which readers ask for it.
"""

from pipeline.place import Place
from pipeline.tables import delta

PROPERTY = "delta.enableChangeDataFeed"


def turn_on(root: Place) -> None:
    """Let each table below `root` have the feed, from its next version on."""
    for name in delta.tables_in(root):
        table = delta.opened(root / name)
        if table.metadata().configuration.get(PROPERTY) != "true":
            delta.set_property(table, PROPERTY, "true")
