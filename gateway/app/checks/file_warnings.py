"""Warnings about files that other users may change, or whose secrets they may read."""

import os
import pwd
import stat
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from gateway.config.configuration import Configuration, values_of
from gateway.config.named_file import PREFIX, secret_path
from gateway.settings import checks
from gateway.storage.engine.database import database_file

MAXIMUM = 20
"""Lines; further ones are counted in one line."""

SERVICE_USER = "tidegate"
"""The user of the service (systemd/sysusers.conf), whose files root may trust."""

NOBODY = 65_534
"""The apparent owner of files whose real owner a container does not know (user_namespaces(7))."""

SECRET_FILES = frozenset({"password_file", "username_file", "tls_key"})
"""Keys that name a file with a secret; the hash of a password is one."""

SECRETS = frozenset({"key", "password", "token"})
"""Keys whose value is a secret."""


class Named(NamedTuple):
    """A file or folder, its key, and whether it must be secret."""

    key: str
    path: Path
    secret: bool


def file_warnings(configuration: Configuration, data: Path | None = None) -> list[str]:
    """Return a line for each fault, with its remedy: who else may read or change relevant files.

    Only root and the owner should: the configuration, the files that it names, the data folder and
    all folders above them. Files may belong to root, to the present user, to the service or to the
    owner of the data folder.
    """
    trusted = _trusted(data)
    lines: dict[str, None] = {}
    folders: dict[Path, str] = {}  # each once, with the first key that leads there
    for named in _named(configuration, data):
        lines.update(dict.fromkeys(_of_file(named, trusted)))
        for folder in _folders_above(named.path):
            folders.setdefault(folder, named.key)
    if data is not None:
        folders.pop(_real(data), None)  # it is checked separately
    for folder, key in folders.items():
        lines.update(dict.fromkeys(_of_folder(key, folder, trusted)))
    warnings = list(islice(lines, MAXIMUM))
    if len(lines) > MAXIMUM:
        warnings.append(f"{len(lines) - MAXIMUM} more things that others may read or change")
    return warnings


def _named(configuration: Configuration, data: Path | None) -> Iterator[Named]:
    file = Path(configuration.file)
    if file.is_file():  # a gateway without a configuration has a name for it all the same
        yield Named("the configuration", file, _holds_secrets(configuration))
    for name, key, value in values_of(configuration):
        if key.check is checks.readable_file and not value.startswith(PREFIX):
            own = name.rpartition(".")[2]
            secret = own in SECRET_FILES or (
                own == "tls_certificate" and _has_key_in_it(configuration, name)
            )
            yield Named(name, secret_path(value), secret)
    if data is not None:
        yield Named("the data folder", data, secret=False)
        yield Named("the database", database_file(data), secret=True)


def _has_key_in_it(configuration: Configuration, name: str) -> bool:
    """Return whether a certificate's file must contain its private key, as no other is named."""
    place = name.rpartition(".")[0]
    return f"{place}.tls_key" not in {each for each, _, _ in values_of(configuration)}


def _holds_secrets(configuration: Configuration) -> bool:
    """Return whether the configuration itself contains a secret."""
    tables = [configuration, *(bridge.settings for bridge in configuration.bridges)]
    return any(key.name in SECRETS for table in tables for _, key, _ in values_of(table))


def _trusted(data: Path | None) -> frozenset[int]:
    """Return the users who may own relevant files, except the service's."""
    users = {0, os.geteuid(), NOBODY}
    if data is not None:
        with suppress(OSError):
            users.add(data.stat().st_uid)
    return frozenset(users)


def _of_file(named: Named, trusted: frozenset[int]) -> Iterator[str]:
    """Yield the faults of a file or folder itself."""
    key, path = named.key, named.path
    try:
        found = path.stat()
    except OSError:
        return  # the part that needs it reports that
    mode = stat.S_IMODE(found.st_mode)
    spelled = f"{path} ({mode:04o})"
    if mode & stat.S_IWOTH:
        yield f"{key}: every user of this machine may change {spelled}: chmod o-w {_quoted(path)}"
    if named.secret and mode & stat.S_IROTH:
        yield f"{key}: every user of this machine may read {spelled}: chmod o-r {_quoted(path)}"
    if found.st_uid not in trusted:
        yield from _of_owner(key, path, found.st_uid)


def _folders_above(path: Path) -> list[Path]:
    """Return the folders that lead to a file, by its name and through links."""
    return [*map(_real, path.absolute().parents), *_real(path).parents]


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _of_folder(key: str, folder: Path, trusted: frozenset[int]) -> Iterator[str]:
    """Yield the faults of a folder in which somebody could replace the file."""
    try:
        found = folder.stat()
    except OSError:
        return
    mode = stat.S_IMODE(found.st_mode)
    if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
        yield (
            f"{key}: every user of this machine may replace what is in {folder} ({mode:04o}):"
            f" chmod o-w {_quoted(folder)}"
        )
    if found.st_uid not in trusted:
        yield from _of_owner(key, folder, found.st_uid)


def _of_owner(key: str, path: Path, user: int) -> Iterator[str]:
    name = user_name(user)  # imported here only: it loads libraries
    if name != SERVICE_USER:
        command = f"chown root {_quoted(path)}"
        yield f"{key}: {path} belongs to user {name}, who may change it: {command}"


def _quoted(path: Path) -> str:
    import shlex  # for a warning alone

    return shlex.quote(str(path))


def user_name(user: int) -> str:
    """Return the name of a user, or the number without one."""
    with suppress(KeyError):
        return pwd.getpwuid(user).pw_name
    return str(user)
