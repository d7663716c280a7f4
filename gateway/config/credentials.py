"""Secrets in files: at a path, or one of the service's systemd credentials."""

import os
from pathlib import Path

PREFIX = "credential:"
"""Prefix of a credential's name in a configuration (systemd's LoadCredential=)."""

FOLDER = "CREDENTIALS_DIRECTORY"
"""The environment variable with the credentials' folder."""


def secret_path(text: str) -> Path:
    """Return the file that a configuration names; raise ValueError for an unknown credential."""
    if not text.startswith(PREFIX):
        return Path(text)
    name, folder = text.removeprefix(PREFIX), os.environ.get(FOLDER)
    if not name or "/" in name or name.startswith("."):
        raise ValueError("a credential's name behind credential:, without slashes")
    if not folder:
        raise ValueError(f"a file: there are no credentials here, since ${FOLDER} is not set")
    return Path(folder) / name
