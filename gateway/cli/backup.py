"""`tidegate backup` and `tidegate restore`: all of a gateway's data in one file."""

import argparse
import io
import json
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from gateway.cli.run_arguments import INSTALLED
from gateway.errors import TidegateError
from gateway.version import VERSION

if TYPE_CHECKING:
    import tarfile

    from gateway.cli.parser import Commands
    from gateway.config.configuration import Configuration

FORMAT = 1
"""Version of the archive: this Tidegate cannot read a higher one."""

MANIFEST, DATABASE, CONFIG, FILES = "manifest.json", "tidegate.db", "gateway.toml", "files"
PRIVATE = 0o600
SECRET_KEYS = ("password_file", "tls_key")
OTHER_KEYS = ("acl_file", "tls_certificate", "client_ca", "ca_file")
KEY_INSIDE = b"PRIVATE KEY-----"
MANIFEST_BYTES = 1 << 20


def add_backup(commands: "Commands") -> None:
    """Add the commands `backup` and `restore`."""
    backup = commands.add_parser("backup", help="write all data of a gateway to one file")
    add_archives_to_make(backup)
    backup.set_defaults(command=make_archives)
    restore = commands.add_parser("restore", help="restore a backup")
    add_archives_to_read(restore)
    restore.set_defaults(command=restore_archives)


def add_archives_to_make(parser: argparse.ArgumentParser) -> None:
    """Add the options of a command that calls `make_archives`."""
    parser.add_argument("file", type=Path, metavar="FILE", help="archive to write, .tar or .tar.gz")
    _add_places(parser)
    parser.add_argument(
        "--secrets",
        type=Path,
        metavar="FILE",
        help="second archive, for passwords and private keys, which are otherwise omitted",
    )


def add_archives_to_read(parser: argparse.ArgumentParser) -> None:
    """Add the options of a command that calls `restore_archives`."""
    parser.add_argument(
        "files", type=Path, metavar="FILE", nargs="+", help="archive, also that of secrets"
    )
    _add_places(parser)


def _add_places(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--data",
        type=Path,
        default=INSTALLED,
        metavar="DIR",
        help="data folder (/var/lib/tidegate)",
    )
    parser.add_argument(
        "--config",
        type=Path,
        default=Path("/etc/tidegate/gateway.toml"),
        metavar="FILE",
        help="configuration file (/etc/tidegate/gateway.toml)",
    )


def make_archives(options: argparse.Namespace, *, exported: bool = False) -> int:
    """Write the archives, which record whether the identity moves with them.

    Raise TidegateError.
    """
    from gateway.config.load import read

    for file in (options.file, options.secrets):
        if file is not None and file.exists():
            raise TidegateError(f"{file}: is there already; choose another name")
    database = options.data / DATABASE
    if not database.is_file():
        raise TidegateError(f"{database}: there is no such file; --data names the data folder")
    configuration = read(options.config)[0] if options.config.exists() else None
    plain, secret = named_files(configuration)
    left_out = [] if options.secrets else list(map(str, secret))
    with _copy(database, options.file) as copy, _archive(options.file) as archive:
        gateway_id = configuration and configuration.gateway_id
        manifest = {**_facts(copy), "gateway": gateway_id, "exported": exported}
        _add(archive, MANIFEST, json.dumps({**manifest, "left_out": left_out}).encode())
        archive.add(copy, DATABASE, filter=_private)
        if configuration is not None:
            archive.add(options.config, CONFIG, filter=_private)
        _add_files(archive, plain)
    print(f"{options.file}: {options.file.stat().st_size:,} bytes")
    if options.secrets is not None:
        with _archive(options.secrets) as archive:
            _add(archive, MANIFEST, json.dumps({**manifest, "left_out": []}).encode())
            _add_files(archive, secret)
        print(f"{options.secrets}: {len(secret)} files with secrets; keep it apart")
    for name in left_out:
        print(f"{name}: left out, because it is a secret; --secrets FILE includes it")
    return 0


def named_files(configuration: "Configuration | None") -> tuple[list[Path], list[Path]]:
    """Return the files that a configuration names: public ones, and secrets."""
    if configuration is None:
        return [], []
    plain: dict[Path, None] = {}
    secret: dict[Path, None] = {}
    for settings in (*configuration.listeners, *configuration.uplinks):
        for key in (*SECRET_KEYS, *OTHER_KEYS):
            name = getattr(settings, key, None)
            if name is None or ":" in name or not Path(name).is_file():
                continue
            path = Path(name).absolute()
            is_secret = key in SECRET_KEYS or KEY_INSIDE in path.read_bytes()
            (secret if is_secret else plain)[path] = None
    return [each for each in plain if each not in secret], list(secret)


@contextmanager
def _copy(database: Path, beside: Path) -> Iterator[Path]:
    """Yield a copy of a database that may be in use, as it was at one moment."""
    copy = beside.with_name(f"{beside.name}.database")
    try:
        os.close(os.open(copy, os.O_CREAT | os.O_EXCL | os.O_WRONLY, PRIVATE))
        with (
            closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as source,
            closing(sqlite3.connect(copy)) as target,
        ):
            source.backup(target)  # in one step: a reader of WAL sees one moment
            target.execute("PRAGMA journal_mode = DELETE")
            (found,) = target.execute("PRAGMA quick_check(1)").fetchone()
        if found != "ok":
            raise TidegateError(f"{database}: is damaged ({found}); start the gateway, which mends")
        yield copy
    except (sqlite3.Error, OSError) as error:
        raise TidegateError(f"{beside}: the backup failed: {error}") from error
    finally:
        copy.unlink(missing_ok=True)


@contextmanager
def _archive(file: Path) -> "Iterator[tarfile.TarFile]":
    """Yield an archive to be written, which gets its name once it is complete and on disk."""
    import tarfile  # it imports lzma and shutil, which no start needs

    unfinished = file.with_name(f"{file.name}.unfinished")
    try:
        descriptor = os.open(unfinished, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, PRIVATE)
        with os.fdopen(descriptor, "wb") as output:
            mode = "w:gz" if file.suffix in (".gz", ".tgz") else "w:"
            with tarfile.open(fileobj=output, mode=mode) as archive:  # type: ignore[call-overload]  # of two modes
                yield archive
            output.flush()
            os.fsync(descriptor)
        unfinished.rename(file)
    except OSError as error:
        raise TidegateError(f"{file}: {error.strerror or error}") from error
    finally:
        unfinished.unlink(missing_ok=True)


def _facts(copy: Path) -> dict[str, Any]:
    with closing(sqlite3.connect(copy)) as database:
        (schema,) = database.execute("PRAGMA user_version").fetchone()
        newest = "SELECT epoch FROM starts ORDER BY start DESC LIMIT 1"
        row = database.execute(newest).fetchone() if schema else None
    made = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    epoch = row and row[0]
    return {"format": FORMAT, "version": VERSION, "made": made, "schema": schema, "epoch": epoch}


def _add(archive: "tarfile.TarFile", name: str, content: bytes) -> None:
    import tarfile

    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), PRIVATE
    archive.addfile(entry, io.BytesIO(content))


def _add_files(archive: "tarfile.TarFile", files: list[Path]) -> None:
    for file in files:
        archive.add(file, f"{FILES}{file}", recursive=False)


def _private(entry: "tarfile.TarInfo") -> "tarfile.TarInfo":
    entry.mode = PRIVATE
    return entry


def restore_archives(options: argparse.Namespace, *, exported: bool = False) -> int:
    """Restore the content of the archives, all of them exports or none; raise TidegateError."""
    import tarfile

    for file in options.files:
        try:
            with tarfile.open(file) as archive:
                _restore_archive(file, archive, options, exported=exported)
        except (tarfile.TarError, EOFError) as error:
            reason = str(error).partition("\n")[0].rstrip(":")
            raise TidegateError(f"{file}: is no backup of Tidegate: {reason}") from error
        except OSError as error:
            raise TidegateError(f"{error.filename or file}: {error.strerror or error}") from error
    return 0


def _restore_archive(
    file: Path, archive: "tarfile.TarFile", options: argparse.Namespace, *, exported: bool
) -> None:
    from gateway.app.disk.data_folder import DataFolder, keep_private

    data: Path = options.data
    manifest = _read_manifest(file, archive)
    if bool(manifest.get("exported")) != exported:
        what, command = ("a backup", "restore") if exported else ("an export", "import")
        raise TidegateError(f"{file}: is {what}, which `tidegate {command}` reads")
    names = archive.getnames()
    keep_private()
    if DATABASE in names:
        with closing(DataFolder(data)):
            _require_no_database(data)
            _write(archive, DATABASE, data / DATABASE)
        name = manifest.get("gateway") or "of no configuration"
        print(f"{data}: gateway {name} as of {manifest['made']}, epoch {manifest['epoch']}")
        print("Its next start has an epoch of its own. Start no second gateway of this name.")
    if CONFIG in names:
        _write(archive, CONFIG, options.config)
    for name in names:
        place = name.removeprefix(FILES)
        if place != name and ".." not in Path(place).parts:
            _write(archive, name, Path(place))
    for secret in manifest.get("left_out", []):
        print(f"{secret}: is not in {file}: restore the archive of --secrets, or create it again")


def _read_manifest(file: Path, archive: "tarfile.TarFile") -> dict[str, Any]:
    """Return it; raise TidegateError if this Tidegate cannot read the archive."""
    from gateway.storage.engine.migrations.migrate import migrations

    try:
        content = _content(archive, MANIFEST)
        manifest: dict[str, Any] = json.loads(content.read(MANIFEST_BYTES))
        form, schema, newest = manifest["format"], manifest["schema"], migrations()[-1][0]
        if form > FORMAT or schema > newest:
            made_by = manifest["version"]
            raise TidegateError(
                f"{file}: was made by Tidegate {made_by} with schema version {schema}, this "
                f"Tidegate supports up to {newest}: restore it with that version"
                " (tidegate docs backup)"
            )
    except (KeyError, TypeError, ValueError) as error:
        raise TidegateError(f"{file}: is no backup of Tidegate: no {MANIFEST}") from error
    return manifest


def _content(archive: "tarfile.TarFile", name: str) -> IO[bytes]:
    content = archive.extractfile(name)
    if content is None:
        raise ValueError(f"{name} is no file")
    return content


def _require_no_database(data: Path) -> None:
    """Raise TidegateError if there is one, or its log, which SQLite would add to the other.

    A reader of a stopped gateway's database leaves an empty log.
    """
    database = data / DATABASE
    logs = [data / f"{DATABASE}{suffix}" for suffix in ("-journal", "-wal")]
    places = [database, *(log for log in logs if log.exists() and log.stat().st_size)]
    if found := ", ".join(str(place) for place in places if place.exists()):
        raise TidegateError(f"{found}: exists already; move it away, or choose another --data")


def _write(archive: "tarfile.TarFile", name: str, place: Path) -> None:
    """Write one file completely or not at all; an existing file stays."""
    if place.exists():
        print(f"{place}: exists already and is not changed")
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    unfinished = place.with_name(f"{place.name}.restoring")
    entry = archive.getmember(name)
    with unfinished.open("wb") as output:
        content = _content(archive, name)
        while part := content.read(1 << 20):
            output.write(part)
        output.flush()
        os.fsync(output.fileno())
    folder = place.parent.stat()
    unfinished.chmod(0o640 if name in (DATABASE, CONFIG) else entry.mode & 0o640)
    if os.geteuid() == 0:  # the owner of the folder: the data belongs to the service's user
        os.chown(unfinished, folder.st_uid, folder.st_gid)
    unfinished.rename(place)
    print(f"{place}: restored")
