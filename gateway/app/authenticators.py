"""Who may connect at which listener."""

from pathlib import Path
from typing import TYPE_CHECKING

from gateway.broker.access import Anonymous, Authenticator
from gateway.config.settings import Configuration

if TYPE_CHECKING:
    from gateway.server.password_file import PasswordFile


class _Either:
    """Lets in those without a user name, and of the others those whose password is right."""

    proves = True

    def __init__(self, password_file: "PasswordFile") -> None:
        self._password_file = password_file

    def check(self, username: str | None, password: bytes | None) -> bool:
        """Return True if the client may connect."""
        return username is None or self._password_file.check(username, password)


def authenticator(configuration: Configuration, place: int) -> Authenticator:
    """Return who decides at the listener at this place; raise ConfigurationError."""
    listener = configuration.listeners[place]
    if listener.tls_identity is not None:
        return Nobody()  # but those whom their certificate names, who are not asked
    if listener.password_file is None:
        return Nobody() if listener.allow_anonymous is False else Anonymous()
    from gateway.server.password_file import load

    password_file = load(Path(listener.password_file))
    return _Either(password_file) if listener.allow_anonymous else password_file


class Nobody:
    """Lets nobody in: anonymous access is forbidden and no user is named."""

    proves = False

    def check(self, username: str | None, password: bytes | None) -> bool:  # noqa: ARG002 - a shape
        """Return False."""
        return False
