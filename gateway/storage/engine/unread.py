"""Unreadable files that were set aside: each start tries them again."""

import logging
from pathlib import Path

from gateway.storage.engine.damage import UNREADABLE

logger = logging.getLogger(__name__)

NOTE = ".unread"
"""Suffix of the note beside such a file."""

WHAT_TO_DO = (
    "nothing of {name} could be read ({why}); each start tries it again, and adds what is in it."
    " Copy it to another disk; if nobody needs it, delete it"
)


def note_unread(aside: Path, why: str) -> None:
    """Leave a note beside a file that was set aside; without one it is not tried again."""
    logger.critical("%s", WHAT_TO_DO.format(name=aside, why=why))
    try:
        _note_of(aside).write_text(why + "\n", encoding="utf-8")
    except OSError as error:
        logger.warning("%s will not be tried again at the next start: %s", aside, error)


def unread_files(database: Path) -> list[Path]:
    """Return the files beside a database of which nothing could be read; raise OSError."""
    notes = sorted(database.parent.glob(f"{database.name}.*{NOTE}"))
    files = [note.with_name(note.name.removesuffix(NOTE)) for note in notes]
    return [file for file in files if file.is_file()]


def read_again(database: Path, just_now: Path | None) -> list[Path]:
    """Add the rows of files that have become readable; return those that are still unreadable.

    A file that was set aside `just_now` waits for the next start.
    """
    try:
        files = unread_files(database)
        return [file for file in files if file == just_now or not _is_read(file, database)]
    except OSError as error:
        logger.warning("%s: files that were set aside cannot be read: %s", database, error)
        return []


def _is_read(file: Path, database: Path) -> bool:
    from gateway.salvage.bring_in import bring_in_file

    try:
        result = bring_in_file(file, database)
        _note_of(file).unlink(missing_ok=True)
    except (OSError, *UNREADABLE) as error:
        logger.critical("%s", WHAT_TO_DO.format(name=file, why=error))
        return False
    logger.warning("%s can be read now, and was added to the database: %s", file, result)
    return True


def _note_of(file: Path) -> Path:
    return file.with_name(file.name + NOTE)
