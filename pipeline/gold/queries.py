"""The queries that become gold tables of one's own; an idle run reads them without Spark."""

import re
from pathlib import Path

from pipeline.errors import PipelineError

_NAME = re.compile("[a-z][a-z0-9_]{0,62}")


def read_queries(folder: Path) -> dict[str, str]:
    """Return the queries in the files `<table>.sql` of a folder, by table.

    Raises PipelineError for a folder that is not there and a name that no table can have.
    """
    if not folder.is_dir():
        raise PipelineError(f"there is no folder {folder} of gold tables")
    found = {}
    for file in sorted(folder.glob("*.sql")):
        if not _NAME.fullmatch(file.stem):
            raise PipelineError(f"{file}: a table's name is 1 to 63 of a-z, 0-9 and _")
        found[file.stem] = file.read_text(encoding="utf-8").strip().rstrip(";")
    return found
