"""Password and ACL files that say nothing, and what that means."""

from collections.abc import Iterator
from pathlib import Path

from gateway.app.access import read_acl
from gateway.app.authenticators import password_file
from gateway.config.configuration import Configuration
from gateway.config.errors import ConfigurationError
from gateway.pieces import EMPTY_ON_PURPOSE, complete
from gateway.settings.listener import ListenerSettings

LARGEST_CHECKED = 64 * 1024
"""Bytes of a file up to which it may say nothing; a longer one is taken to say something."""

RULES = "has no rules: clients here may read and write nothing"
USERS = "has no users: nobody can log in here"


def empty_file_warnings(configuration: Configuration) -> Iterator[str]:
    """Give a line for each file that says nothing, but not that this is on purpose."""
    for index, listener in enumerate(configuration.listeners):
        try:
            yield from _of_listener(f"listener[{index}]", listener)
        except ConfigurationError:
            continue  # which the check of the listener tells


def _of_listener(name: str, listener: ListenerSettings) -> Iterator[str]:
    purpose = f"; if that is meant, say so in it: # {EMPTY_ON_PURPOSE}"
    if _is_short(listener.acl_file):
        acl = complete(read_acl(listener))
        if acl is not None and not acl and not acl.empty_on_purpose:
            yield f"{name}.acl_file: {listener.acl_file} {RULES}{purpose}"
    if _is_short(listener.password_file):
        users = complete(password_file(listener))
        if users is not None and not len(users) and not users.empty_on_purpose:
            yield f"{name}.password_file: {listener.password_file} {USERS}{purpose}"


def _is_short(path: str | None) -> bool:
    try:
        return path is not None and Path(path).stat().st_size <= LARGEST_CHECKED
    except OSError:
        return False
