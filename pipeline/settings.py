"""Where the pipeline reads and writes, and where Spark runs."""

import os
from dataclasses import dataclass
from pathlib import Path

LANDING = Path("var/landing")
TABLES = Path("var/tables")
"""What `make run` writes, and the tables beside it."""
MASTER = "local[*,3]"
"""All cores; a task whose worker dies is tried again, three times in all."""
MASTER_VARIABLE = "TIDEGATE_SPARK_MASTER"


@dataclass(frozen=True)
class Settings:
    """Absolute folders and a Spark master."""

    landing: Path
    tables: Path
    checkpoints: Path
    """`checkpoints/<name of the tables' folder>` beside that folder."""
    master: str

    @property
    def local(self) -> bool:
        """Whether Spark runs within this machine."""
        return self.master.startswith("local")

    @property
    def scratch(self) -> Path:
        """Spark's working files; cleared at each start, since a kill leaves them behind."""
        return self.checkpoints / "scratch"

    @property
    def spark_log(self) -> Path:
        """The file that takes what Spark would write on the terminal; one run's at a time."""
        return self.checkpoints / "spark.log"


def make_settings(
    landing: Path = LANDING, tables: Path = TABLES, master: str | None = None
) -> Settings:
    """Return settings for these folders; an absent master is the environment's, then local."""
    tables = tables.resolve()
    return Settings(
        landing=landing.absolute(),
        tables=tables,
        checkpoints=tables.parent / "checkpoints" / tables.name,
        master=master or os.environ.get(MASTER_VARIABLE) or MASTER,
    )
