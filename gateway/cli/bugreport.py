"""`tidegate bugreport`: everything for fault finding in one archive without secrets."""

import contextlib
import io
import json
import os
import platform
import re
import sqlite3
import subprocess
import sys
import tarfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from gateway.app.checks.findings import Installation
from gateway.cli.doctor import broker_of
from gateway.cli.uplink import figures
from gateway.compiled import build
from gateway.config.errors import ConfigurationError
from gateway.config.load import load
from gateway.errors import TidegateError
from gateway.version import describe

SECRET = re.compile(r"password|secret|token|(^|_)key$|username|user$", re.IGNORECASE)
"""Names of keys whose values are left out; `tls_key` and `password_file` are file names."""

USER_INFO = re.compile(r"(?<=://)[^/@\s\"']+@")
REDACTED = "(left out)"
SHORT = 2
"""Characters of a secret that is replaced only in quotes."""

FILES_MAX = 1_000
"""Files of the data folder that are listed."""

LOG_LINES = 2_000
JOURNAL = ("journalctl", "--unit=tidegate", f"--lines={LOG_LINES}", "--output=short-iso", "--quiet")
JOURNAL_SECONDS = 20.0
PRIVATE = 0o600


def command_bugreport(target: Path, data_folder: Path, config: Path) -> int:
    """Make the archive; raise TidegateError if the file exists or cannot be made."""
    try:
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE)
    except OSError as error:
        raise TidegateError(f"{target}: {error.strerror}") from error
    with open(descriptor, "wb") as file, tarfile.open(fileobj=file, mode="w:gz") as archive:  # noqa: PTH123 - a descriptor
        secrets: list[str] = []
        with contextlib.suppress(OSError, ValueError):  # which the check reports
            secrets = _secrets(_document(config))
        for name, text in _parts(data_folder, config):
            data = redacted(text, secrets).encode("utf-8", "replace")
            member = tarfile.TarInfo(f"tidegate-bugreport/{name}")
            member.size, member.mode, member.mtime = len(data), PRIVATE, int(time.time())
            archive.addfile(member, io.BytesIO(data))
            print(f"{name}: {len(data):,} bytes")
    print(f"{target}: read it before you send it; topics and client identifiers are in it")
    return 0


def _parts(data: Path, config: Path) -> Iterator[tuple[str, str]]:
    yield "system.json", json.dumps(_system(), indent=2)
    yield "configuration.json", _configuration(config)
    yield "files.txt", _files(data)
    yield "check.txt", _of_command("check", str(config), "--data", str(data))
    yield (
        "doctor.txt",
        _of_command(
            "doctor", "--data", str(data), *(("--config", str(config)) if config.exists() else ())
        ),
    )
    yield "figures.json", _figures(data, config)
    yield "log.txt", _log()


def _system() -> dict[str, object]:
    return {
        "tidegate": describe(build()),
        "python": sys.version,
        "platform": platform.platform(),
        "machine": platform.machine(),
        "sqlite": sqlite3.sqlite_version,
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def _document(file: Path) -> dict[str, Any]:
    """Return the content of the configuration file; raise OSError or ValueError."""
    return tomllib.loads(file.read_text(encoding="utf-8-sig"))


def _configuration(file: Path) -> str:
    """Return the keys and values without secrets and comments, or why they are unreadable."""
    try:
        return json.dumps(without_secrets(_document(file)), indent=2, default=str)
    except (OSError, ValueError) as error:
        return f"{file}: {error}"


def _is_secret(name: str, value: Any) -> bool:
    """Return whether a value is left out; the name of an existing file is no secret."""
    return bool(SECRET.search(name)) and not (isinstance(value, str) and Path(value).is_file())


def _secrets(value: Any, name: str = "") -> list[str]:
    """Return the texts that are secret, the longest first."""
    if isinstance(value, dict):
        found = [text for key, each in value.items() for text in _secrets(each, key)]
    elif isinstance(value, list):
        found = [text for each in value for text in _secrets(each, name)]
    else:
        found = [str(value)] if _is_secret(name, value) else []
    return sorted(found, key=len, reverse=True)


def without_secrets(value: Any, name: str = "") -> Any:
    """Return the same tables and lists, without the values of secret keys.

    Names of files stay: they are no secret, and a wrong one is a common fault.
    """
    if isinstance(value, dict):
        return {key: without_secrets(each, key) for key, each in value.items()}
    if isinstance(value, list):
        return [without_secrets(each, name) for each in value]
    return REDACTED if _is_secret(name, value) else value


def redacted(text: str, secrets: Sequence[str] = ()) -> str:
    """Return a text without users and passwords in URLs, and without these secrets.

    `check` and the log report a mistake of the configuration with its value. A secret of one or two
    characters is replaced only in quotes: it may be part of any word.
    """
    for secret in secrets:
        text = text.replace(repr(secret), f"'{REDACTED}'")
        if len(secret) > SHORT:
            text = text.replace(secret, REDACTED)
    return USER_INFO.sub(f"{REDACTED}@", text)


def _files(data: Path) -> str:
    lines = []
    for file in islice(sorted(data.rglob("*")), FILES_MAX):
        with contextlib.suppress(OSError):
            found = file.lstat()
            when = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(found.st_mtime))
            owner = f"{found.st_uid}:{found.st_gid}"
            lines.append(f"{found.st_mode:06o} {owner} {found.st_size:12} {when} {file}")
    return "\n".join(lines) or f"{data}: no file that this user may see"


def _of_command(*arguments: str) -> str:
    """Return the output of a command of this program, whatever its exit status."""
    from gateway.cli.main import main  # it loads this module

    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        status = main(arguments)
    return f"{out.getvalue()}exit status {status}\n"


def _figures(data: Path, config: Path) -> str:
    """Return all figures of the running gateway, or why they are not available."""
    try:
        configuration = load(config) if config.exists() else None
        broker = broker_of(Installation(data, configuration))
        return json.dumps(figures(broker, ("$SYS/broker/#",), "gateway/version"), indent=2)
    except (ConfigurationError, TidegateError) as error:
        return str(error)


def _log() -> str:
    try:
        found = subprocess.run(  # noqa: S603 - a fixed command
            JOURNAL, capture_output=True, timeout=JOURNAL_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"no journal: {error}"
    return (found.stdout + found.stderr).decode("utf-8", "replace")
