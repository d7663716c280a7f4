"""Secrets in files: at a path, or one of the credentials that systemd gives a service."""

import os
from pathlib import Path

PREFIX = "credential:"
"""What a configuration writes before the name of a credential (systemd's LoadCredential=)."""

FOLDER = "CREDENTIALS_DIRECTORY"
"""The environment variable in which systemd names their folder."""


def secret_path(text: str) -> Path:
    """Return the file that a configuration names; raise ValueError for a credential without one."""
    if not text.startswith(PREFIX):
        return Path(text)
    name, folder = text.removeprefix(PREFIX), os.environ.get(FOLDER)
    if not name or "/" in name or name.startswith("."):
        raise ValueError("a credential's name behind credential:, without slashes")
    if not folder:
        raise ValueError(f"a file: there are no credentials here, since ${FOLDER} is not set")
    return Path(folder) / name
