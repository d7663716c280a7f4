"""How whatever changes the tables begins: with all of them there, and what was committed."""

from pipeline.operation.migrate import migrate, rename_outcome
from pipeline.settings import Settings
from pipeline.tables import on_disk, silver_numbers, state
from pipeline.tables.damage import drop_unreadable
from pipeline.tables.delta import Where
from pipeline.tables.state import State


def begin(settings: Settings, *, verify: bool = False) -> tuple[State, int]:
    """Make what is missing; return what was committed, and the highest number of any batch."""
    root = settings.tables
    if root.folder is not None:
        root.folder.mkdir(parents=True, exist_ok=True)
    newest = on_disk.create(root)
    migrate(settings.checkpoints, root)
    if verify:
        drop_unreadable(root)
    committed = state.load(root)
    rename_outcome(root, committed)
    return committed, newest


def recount(root: Where, committed: State) -> None:
    """Make the table `islands` of silver's rows again, if it may be wrong."""
    if committed.recount:
        silver_numbers.overwrite(root, on_disk.silver_islands(root))
        committed.recount = False
        committed.note()
