"""Which clients may connect at which listener."""

from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from gateway.broker.connecting.connection_info import Anonymous, Authenticator, Credentials, Decide
from gateway.broker.connecting.failed_logins import FailedLogins
from gateway.broker.instant import Instant
from gateway.pieces import Pieces
from gateway.server.turn import Turn
from gateway.settings.listener import ListenerSettings

if TYPE_CHECKING:
    from gateway.server.passwords.file import PasswordFile
    from gateway.server.passwords.logins import PasswordThread


def password_file(listener: ListenerSettings) -> "Pieces[PasswordFile | None]":
    """Return the users of a listener, None if it requires no password.

    Raises ConfigurationError if the file cannot be used.
    """
    if listener.password_file is None:
        return None
    from gateway.server.passwords.file import load_in_pieces

    return (yield from load_in_pieces(Path(listener.password_file)))


def authenticator(
    passwords: "Passwords", listener: ListenerSettings, file: "PasswordFile | None"
) -> Authenticator:
    """Return the authenticator of a listener with this password file."""
    if file is not None:
        from gateway.server.passwords.logins import PasswordLogins

        return PasswordLogins(file, passwords.thread(), anonymous=bool(listener.allow_anonymous))
    if listener.tls_identity is not None or listener.allow_anonymous is False:
        return Nobody()  # except users of certificates, which are not checked here
    return Anonymous()


class Passwords:
    """The thread that checks passwords; it begins with the first listener that has any."""

    def __init__(self, turn: Turn, failed_logins: FailedLogins, stack: AsyncExitStack) -> None:
        self._turn = turn
        self._failed_logins = failed_logins
        self._stack = stack
        self._thread: PasswordThread | None = None

    def thread(self) -> "PasswordThread":
        """Return the thread."""
        if self._thread is None:
            from gateway.server.passwords.logins import PasswordThread

            self._thread = PasswordThread(self._turn.loop, self._turn.now, self._failed_logins)
            self._stack.callback(self._thread.close)
        return self._thread


class Nobody:
    """Accepts nobody: anonymous access is forbidden and no user exists."""

    proves = False

    def check(self, credentials: Credentials, instant: Instant, decide: Decide) -> None:  # noqa: ARG002 - a shape
        """Refuse at once."""
        decide(False, instant)  # noqa: FBT003 - the answer
