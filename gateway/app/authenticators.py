"""Who may connect at which listener."""

from pathlib import Path
from typing import TYPE_CHECKING

from gateway.broker.connecting.connection_info import Anonymous, Authenticator, Credentials, Decide
from gateway.broker.instant import Instant
from gateway.pieces import Pieces
from gateway.settings.listener import ListenerSettings

if TYPE_CHECKING:
    from gateway.app.gateway import Gateway
    from gateway.server.passwords.file import PasswordFile


def password_file(listener: ListenerSettings) -> "Pieces[PasswordFile | None]":
    """Return the users of a listener, None if it asks for no password.

    Raises ConfigurationError if the file cannot be used.
    """
    if listener.password_file is None:
        return None
    from gateway.server.passwords.file import load_in_pieces

    return (yield from load_in_pieces(Path(listener.password_file)))


def authenticator(
    gateway: "Gateway", listener: ListenerSettings, file: "PasswordFile | None"
) -> Authenticator:
    """Return who decides at a listener that has this password file."""
    if file is not None:
        from gateway.server.passwords.logins import PasswordLogins

        thread = gateway.password_thread()
        return PasswordLogins(file, thread, anonymous=bool(listener.allow_anonymous))
    if listener.tls_identity is not None or listener.allow_anonymous is False:
        return Nobody()  # but those whom their certificate names, who are not asked
    return Anonymous()


class Nobody:
    """Lets nobody in: anonymous access is forbidden and no user is named."""

    proves = False

    def check(self, credentials: Credentials, instant: Instant, decide: Decide) -> None:  # noqa: ARG002 - a shape
        """Decide at once that the client may not."""
        decide(False, instant)  # noqa: FBT003 - the answer
