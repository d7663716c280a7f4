"""Where the pipeline reads and writes, and where Spark runs."""

import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from pipeline.errors import PipelineError
from pipeline.place import Place, place_of

LANDING = Path("var/landing")
TABLES = Path("var/tables")
"""What `make run` writes, and the tables beside it."""
MASTER = "local[*,3]"
"""All cores; a task whose worker dies is tried again, three times in all."""
MASTER_VARIABLE = "TIDEGATE_SPARK_MASTER"
BATCH_BYTES = 256 * 1024 * 1024
BATCH_FILES = 10_000
BATCH_ROWS = 2_000_000

Watch = Callable[[str, int, int], None]
"""Takes the name of a step, how much of it is done, and the whole."""


def unwatched(_step: str, _done: int, _whole: int) -> None:
    """Show nobody how far a step is."""


class BatchSize(NamedTuple):
    """What a batch takes of the landing files at most; a larger file is a batch by itself."""

    bytes: int = BATCH_BYTES
    """About 800,000 records in lines."""
    files: int = BATCH_FILES
    rows: int = BATCH_ROWS
    """Parquet may have ten million equal rows in 57 MB; the driver compares those of them that came
    twice, 0.3 KB each."""


@dataclass(frozen=True)
class Settings:
    """Where landing files and tables are, and a Spark master."""

    landing: Place
    tables: Place
    checkpoints: Path
    """The folder of Spark's log and working files: `checkpoints/<name of the tables' folder>`
    beside that folder, and for tables in a store one in the user's cache."""
    master: str
    batch: BatchSize = field(default_factory=BatchSize)
    spark: Mapping[str, str] = field(default_factory=dict)
    """Spark's own settings, by name, which go before those of `session.py`."""
    cache: Path | None = None
    """Where Java's archive of Spark's classes is; None for none."""
    reads_only: bool = False
    """Whether this process leaves the tables as they are, so that others may work on them."""

    @property
    def local(self) -> bool:
        """Whether Spark runs within this machine."""
        return self.master.startswith("local")

    @property
    def scratch(self) -> Path:
        """Spark's working files, a folder a process; each start clears what kills left."""
        return self.checkpoints / "scratch"

    @property
    def spark_log(self) -> Path:
        """The file that takes what Spark would write on the terminal; one run's at a time."""
        return self.checkpoints / ("spark-read.log" if self.reads_only else "spark.log")


def make_settings(
    landing: Place | Path = LANDING,
    tables: Place | Path = TABLES,
    master: str | None = None,
    batch: BatchSize | None = None,
    spark: Mapping[str, str] | None = None,
    cache: Path | None = None,
) -> Settings:
    """Return settings for these places; an absent master is the environment's, then local.

    Raises PipelineError for a URL of no store, or a size below 1.
    """
    batch = batch or BatchSize()
    for name, size in batch._asdict().items():
        if size < 1:
            raise PipelineError(f"{size} {name} in a batch are less than 1")
    place = place_of(tables)
    if place.folder is not None:
        place = place_of(place.folder.resolve())
    return Settings(
        landing=place_of(landing),
        tables=place,
        checkpoints=_checkpoints(place),
        master=master or os.environ.get(MASTER_VARIABLE) or MASTER,
        batch=batch,
        spark=dict(spark or {}),
        cache=cache.absolute() if cache else None,
    )


def _checkpoints(tables: Place) -> Path:
    if tables.folder is not None:
        return tables.folder.parent / "checkpoints" / tables.folder.name
    name = f"{tables.base}-{sha256(tables.name.encode()).hexdigest()[:16]}"
    return (user_cache() or Path(tempfile.gettempdir(), "tidegate-pipeline")) / "stores" / name


def user_cache() -> Path | None:
    """Return the user's folder for caches of this program; None without a home."""
    try:
        user = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError:
        return None
    return Path(user, "tidegate-pipeline")
