"""Handles a database found damaged in use: the gateway ends, and its next start salvages."""

import asyncio
import logging

from gateway.app.parts import Run
from gateway.errors import StartError
from gateway.storage.engine.damage import is_unreadable, note_damage
from gateway.storage.engine.database import Database, database_file
from gateway.storage.engine.database_file import cannot_start
from gateway.storage.engine.replace import set_aside_between
from gateway.storage.engine.writer import Writer

logger = logging.getLogger(__name__)

REPORT_SECONDS = 1.0
"""Seconds between the alarm and the end, so that connected clients receive it."""

SALVAGE_INTERVAL = 3600.0
"""Seconds between a start that salvaged and the next. Otherwise a disk that corrupts new data at
once would be filled with files that were set aside."""

CANNOT_READ = (
    "{path}: {error}; what could be salvaged of it cannot be read either: move the file away, start"
    " again without what is in it, and report this"
)

ENDS = "the gateway ends; its next start sets the database aside and salvages what can be read"
ENDS_LATER = "since it was salvaged within the hour, the gateway ends when that is over"
STAYS = "nor could a note be left for the next start: copy the data folder and put in another disk"


def watch_for_damage(run: Run, database: Database, writer: Writer) -> None:
    """Refuse publishers from then on, raise the alarm `database`, and end the gateway.

    It keeps running if the damage could not be noted: the next start might not find it in the time
    of its check, and would end again.
    """
    loop = asyncio.get_running_loop()
    earliest = loop.time() + (SALVAGE_INTERVAL if database.salvage is not None else 0.0)

    def found(text: str) -> None:
        writer.refuses = "the database is damaged"
        wait = max(REPORT_SECONDS, earliest - loop.time())
        what = STAYS
        if database.damage_noted:
            what = ENDS if wait == REPORT_SECONDS else ENDS_LATER
            timer = loop.call_later(wait, run.end, f"the database is damaged ({text})")
            run.stack.callback(timer.cancel)
        run.alarm("database", f"the database is damaged ({text}): publishers are refused; {what}")
        logger.critical("%s", what)

    database.on_damage.append(found)


def have_it_salvaged(run: Run, error: Exception) -> None:
    """Note that the database could not be read, for a start that follows at once.

    Raises StartError if that would not help: a database salvaged within the hour gains nothing from
    another salvage, and an error that is not damage has another remedy.
    """
    path = database_file(run.data)
    now = run.clock.wall_ms() / 1000
    if not is_unreadable(error, path):
        raise cannot_start(error, path) from error
    if not path.is_file() or set_aside_between(path, now - SALVAGE_INTERVAL, now):
        raise StartError(CANNOT_READ.format(path=path, error=error)) from error
    if not note_damage(path, f"{type(error).__name__}: {error}"):
        raise StartError(f"{path}: {error}; {STAYS}") from error
    logger.critical("%s could not be read (%s): it is salvaged", path, error, exc_info=error)
