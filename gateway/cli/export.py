"""`tidegate export` and `tidegate import`: move a gateway to another board, with its identity."""

import argparse
import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from gateway.cli.backup import (
    DATABASE,
    add_archives_to_make,
    add_archives_to_read,
    make_archives,
    restore_archives,
)
from gateway.errors import TidegateError

if TYPE_CHECKING:
    from gateway.cli.parser import Commands

IMPORTED = ".imported"
"""Suffix of an archive that was imported: it is not imported a second time."""


def add_export(commands: "Commands") -> None:
    """Add the commands `export` and `import`."""
    export = commands.add_parser("export", help="write a stopped gateway to one file, to move it")
    add_archives_to_make(export)
    export.add_argument("--again", action="store_true", help="export again")
    export.set_defaults(command=_export)
    importing = commands.add_parser("import", help="import an export, or convert a mosquitto.conf")
    add_archives_to_read(importing)
    importing.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help="mosquitto.conf: file for the configuration (standard output)",
    )
    importing.set_defaults(command=_import)


def _export(options: argparse.Namespace) -> int:
    from gateway.app.disk.data_folder import DataFolder
    from gateway.app.identity import MARK, export_mark

    data: Path = options.data
    database = data / DATABASE
    if not database.is_file():
        raise TidegateError(f"{database}: there is no such file; --data names the data folder")
    with closing(DataFolder(data)):  # a running gateway would continue to send
        before = export_mark(data)
        if before and not options.again:
            raise TidegateError(f"{data}: was exported {before}; --again exports it once more")
        _mark(data / MARK, options.file)  # first: no archive may exist without it
        try:
            make_archives(options, exported=True)
        except BaseException:
            if not before:
                (data / MARK).unlink()
            raise
    print(f"{data}: nothing is sent from here any more; `tidegate import` on the other board")
    return 0


def _mark(mark: Path, archive: Path) -> None:
    """Write and sync the mark that the identity is in this archive."""
    from gateway.storage.engine.files import sync_folder

    now = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime())
    unfinished = mark.with_name(f"{mark.name}.unfinished")
    try:
        with unfinished.open("w", errors="replace") as file:
            file.write(f"at {now} UTC into {archive.absolute()}\n")
            file.flush()
            os.fsync(file.fileno())
        if os.geteuid() == 0:  # the service's user removes it later
            folder = mark.parent.stat()
            os.chown(unfinished, folder.st_uid, folder.st_gid)
        unfinished.rename(mark)
        sync_folder(mark.parent)
    except OSError as error:
        raise TidegateError(f"{mark}: {error.strerror or error}") from error


def _import(options: argparse.Namespace) -> int:
    if options.output is not None or options.files[0].suffix == ".conf":
        if len(options.files) > 1:
            raise TidegateError("of mosquitto.conf one file is imported, with its include_dir")
        from gateway.cli.mosquitto.command import convert

        return convert(options.files[0], options.output)
    for file in options.files:
        if file.name.endswith(IMPORTED):
            raise TidegateError(
                f"{file}: was imported already, and an identity is for one board. To import it once"
                f" more give it another name than *{IMPORTED} (tidegate docs backup)"
            )
    there = (options.data / DATABASE).exists()
    restore_archives(options, exported=True)
    if not there and (options.data / DATABASE).exists():
        _make_own(options.data)
    for file in options.files:
        imported = file.with_name(file.name + IMPORTED)
        try:
            file.rename(imported)
        except OSError as error:
            print(f"{file}: {error.strerror}: delete it, so that no other board imports it")
        else:
            print(f"{imported}: is the archive now, so that it is imported once")
    return 0


def _make_own(data: Path) -> None:
    """Make this board the owner: delete the other one's properties, and a mark."""
    from gateway.app.identity import MARK
    from gateway.storage.state.note import FORGET_BOARD

    with closing(sqlite3.connect(data / DATABASE)) as database, database:
        database.execute(FORGET_BOARD)
    (data / MARK).unlink(missing_ok=True)
