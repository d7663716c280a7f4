"""Refuses publishers while the disk accepts no database at the start, and waits for it."""

import asyncio

from gateway.app.parts import Run
from gateway.storage.engine.database import Database
from gateway.storage.engine.database_file import takes_again
from gateway.storage.engine.writer import Writer

CHECK_SECONDS = 5.0
"""Seconds between two checks whether the disk accepts a database."""

REFUSES = "the disk took nothing at the start"

READ_ONLY = (
    "{reason}: everything is kept in memory only, and what was acknowledged is gone with the next"
    " stop; when the folder can be written again, restart the gateway"
)

WAITS = (
    "{reason}: publishers are refused until the disk takes something; then the gateway starts anew"
    " with what is on it"
)


def wait_for_disk(run: Run, database: Database, writer: Writer) -> str:
    """Return the text of the alarm; where the disk may recover, refuse publishers until then."""
    if not database.may_recover:
        return READ_ONLY.format(reason=database.in_memory)
    writer.refuses = REFUSES
    checking = asyncio.get_running_loop().create_task(_until_it_takes(run, database))
    run.stack.callback(checking.cancel)
    return WAITS.format(reason=database.in_memory)


async def _until_it_takes(run: Run, database: Database) -> None:
    while True:
        if await asyncio.to_thread(takes_again, database.path):
            run.start_anew()
            return
        await asyncio.sleep(CHECK_SECONDS)
