"""What the systemd service may read and write, which may be less than the present user."""

import grp
import os
import pwd
import shlex
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from gateway.config.configuration import Configuration, values_of
from gateway.config.named_file import FOLDER, PREFIX
from gateway.settings import checks

UNIT = "tidegate.service"

UNIT_FOLDERS = (
    Path("/etc/systemd/system"),
    Path("/usr/local/lib/systemd/system"),
    Path("/usr/lib/systemd/system"),
)
"""Places of the service's unit; the first that has it counts (systemd.unit(5))."""

HIDDEN = {
    "ProtectHome": (Path("/home"), Path("/root"), Path("/run/user")),
    "PrivateTmp": (Path("/tmp"), Path("/var/tmp")),  # noqa: S108 - named, not used
}
"""Folders that these settings hide from a service (systemd.exec(5))."""

OWN_FOLDERS = {
    "StateDirectory": Path("/var/lib"),
    "RuntimeDirectory": Path("/run"),
    "CacheDirectory": Path("/var/cache"),
    "LogsDirectory": Path("/var/log"),
}
"""Parents of the folders that systemd makes for a service, which may write to them."""

CREDENTIALS = (
    "LoadCredential",
    "LoadCredentialEncrypted",
    "SetCredential",
    "SetCredentialEncrypted",
)

LISTS = frozenset({*CREDENTIALS, *OWN_FOLDERS, "ReadWritePaths", "SupplementaryGroups"})
"""Settings that may be repeated: each adds, an empty one clears."""

START_FOLDER = Path("/")
"""The working directory of a service without WorkingDirectory=."""

READ, SEARCH = 4, 1
"""Permissions as the lowest three bits of a mode."""

ON = ("yes", "true", "on", "1")


class Service(NamedTuple):
    """The unit's configuration, user, credentials and sandbox."""

    config: Path
    user: str
    groups: tuple[str, ...]
    credentials: frozenset[str]
    hidden: tuple[Path, ...]
    writable: tuple[Path, ...] | None
    """None if the unit restricts no writing."""

    def knows_credential(self, value: str) -> bool:
        """Return whether the service has a credential that is not available here."""
        if not value.startswith(PREFIX) or os.environ.get(FOLDER):
            return False
        return value.removeprefix(PREFIX) in self.credentials


def find_service(
    configuration: Configuration, folders: tuple[Path, ...] = UNIT_FOLDERS
) -> Service | None:
    """Return the service that runs with this configuration, None if none does."""
    unit = next((folder / UNIT for folder in folders if (folder / UNIT).is_file()), None)
    if unit is None:
        return None
    drop_ins = (file for folder in folders for file in (folder / f"{UNIT}.d").glob("*.conf"))
    files = [unit, *sorted(drop_ins, key=lambda file: file.name)]
    try:
        text = "\n".join(file.read_text("utf-8", "replace") for file in files)
    except OSError:  # unreadable for this user: nothing is known
        return None
    service = read_unit(text)
    same = service is not None and _real(service.config) == _real(Path(configuration.file))
    return service if same else None


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


class _Settings:
    """The settings of a unit and its drop-ins; later lines override earlier ones."""

    def __init__(self, text: str) -> None:
        self._values: dict[str, list[str]] = {}
        for line in text.replace("\\\n", " ").splitlines():
            name, equals, value = line.partition("=")
            if equals and not line.startswith(("#", ";")):
                self._set(name.strip(), value.strip())

    def _set(self, name: str, value: str) -> None:
        if not value:
            self._values.pop(name, None)
        elif name in LISTS:
            self._values.setdefault(name, []).append(value)
        else:
            self._values[name] = [value]

    def last(self, name: str) -> str:
        return self._values.get(name, [""])[-1]

    def words(self, *names: str) -> list[str]:
        return [
            word for name in names for line in self._values.get(name, ()) for word in line.split()
        ]


def read_unit(text: str) -> Service | None:
    """Return the service of a unit, None if it runs no gateway with a configuration."""
    unit = _Settings(text)
    command = shlex.split(unit.last("ExecStart"))
    if "--config" not in command[:-1]:
        return None
    writable = [base / word for name, base in OWN_FOLDERS.items() for word in unit.words(name)]
    writable += [Path(word.lstrip("-+")) for word in unit.words("ReadWritePaths")]
    return Service(
        config=Path(command[command.index("--config") + 1]),
        user=unit.last("User") or "root",
        groups=tuple(unit.words("SupplementaryGroups")),
        credentials=frozenset(word.partition(":")[0] for word in unit.words(*CREDENTIALS)),
        hidden=tuple(
            path for name, paths in HIDDEN.items() if unit.last(name) in ON for path in paths
        ),
        writable=tuple(writable) if unit.last("ProtectSystem") == "strict" else None,
    )


def service_warnings(configuration: Configuration, service: Service) -> Iterator[str]:
    """Yield a line for each file that the service cannot read or place it cannot write."""
    for name, key, value in values_of(configuration):
        reason = ""
        if key.check is checks.readable_file and not value.startswith(PREFIX):
            reason = _unreadable(service, START_FOLDER / value)
            if not Path(value).is_absolute() and not (START_FOLDER / value).exists():
                reason = "it starts in /, so write the whole path"
        elif name.startswith(("uplink", "listener")) and name.endswith((".directory", ".path")):
            reason = _unwritable(service, START_FOLDER / value)
        if reason:
            yield f"{name}: the service cannot use {value}: {reason}"


def _unreadable(service: Service, path: Path) -> str:
    """Return why the service cannot read a file, "" if it can or that is unknown."""
    real = _real(path)
    for folder in service.hidden:
        if real.is_relative_to(folder):
            return f"its sandbox hides {folder}; move the file to /etc/tidegate"
    try:
        user = pwd.getpwnam(service.user)
    except KeyError:  # systemd reports that when it starts the service
        return ""
    groups = {*os.getgrouplist(service.user, user.pw_gid), *_numbers(service.groups)}
    steps = [*((folder, SEARCH) for folder in reversed(real.parents)), (real, READ)]
    for step, need in steps if user.pw_uid else ():
        if _is_closed(step, need, user.pw_uid, groups):
            cure = "chmod g+x" if need == SEARCH else "chmod g+r"
            return f"{step} is closed to its user: chgrp {service.user} and {cure}"
    return ""


def _numbers(groups: tuple[str, ...]) -> Iterator[int]:
    for name in groups:
        with suppress(KeyError):
            yield grp.getgrnam(name).gr_gid


def _is_closed(path: Path, need: int, user: int, groups: set[int]) -> bool:
    """Return whether a user lacks a permission; what cannot be checked counts as accessible."""
    try:
        found = path.stat()
    except OSError:
        return False
    if found.st_uid == user:
        return not found.st_mode >> 6 & need
    return not (found.st_mode >> 3 if found.st_gid in groups else found.st_mode) & need


def _unwritable(service: Service, path: Path) -> str:
    """Return why the service may not write to a place, "" if it may."""
    if service.writable is None:
        return ""
    if any(_real(path).is_relative_to(_real(folder)) for folder in service.writable):
        return ""
    return "its sandbox closes it; ReadWritePaths= opens a folder (systemctl edit tidegate)"
