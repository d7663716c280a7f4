"""Delta's change data feed: which rows each version of a table inserted and deleted.

Readers find them in the log: a file that a commit adds has inserted rows, one that it removes has
deleted ones. So the feed needs no files of its own, only the property by which readers ask for it.
"""

from pathlib import Path

from deltalake import DeltaTable

from pipeline.tables import delta

PROPERTY = "delta.enableChangeDataFeed"


def turn_on(root: Path) -> None:
    """Let each table below `root` have the feed, from its next version on."""
    for folder in sorted(each for each in root.iterdir() if delta.exists(each)):
        table = DeltaTable(folder.as_uri())
        if table.metadata().configuration.get(PROPERTY) != "true":
            table.alter.set_table_properties({PROPERTY: "true"})
