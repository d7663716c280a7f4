"""Passwords are checked in a thread: a good hash takes longer than others can wait."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from gateway.broker.access import Authenticator, Decide
from gateway.broker.instant import Instant
from gateway.server.password_file import PasswordFile

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future

MAXIMUM_WAITING = 1_000
"""Passwords of all listeners that wait for the thread; who comes then is refused with 0x97."""


class PasswordThread:
    """One thread for all passwords: the rest of the machine is for those who are in already."""

    def __init__(self, loop: "AbstractEventLoop", now: Callable[[], Instant]) -> None:
        self._loop = loop
        self._now = now
        self._executor: ThreadPoolExecutor | None = None
        self._waiting = 0

    def check(
        self, file: PasswordFile, username: str, password: bytes | None, decide: Decide
    ) -> bool:
        """Call `decide` in a later turn, or return False if too many wait."""
        if self._waiting >= MAXIMUM_WAITING:
            return False
        if self._executor is None:
            self._executor = ThreadPoolExecutor(1, "passwords")
        self._waiting += 1

        def checked(found: "Future[bool]") -> None:
            self._waiting -= 1
            if not found.cancelled():
                decide(found.result(), self._now())

        checking = self._loop.run_in_executor(self._executor, file.check, username, password)
        checking.add_done_callback(checked)
        return True

    def close(self) -> None:
        """Check no more; who still waits gets no answer."""
        if self._executor is not None:
            self._executor.shutdown(wait=False, cancel_futures=True)


class PasswordLogins:
    """Lets in the users of a password file, and those without a user name if it says so."""

    proves = True

    def __init__(self, file: PasswordFile, thread: PasswordThread, *, anonymous: bool) -> None:
        self.file = file
        self._thread = thread
        self._anonymous = anonymous

    def check(
        self, username: str | None, password: bytes | None, instant: Instant, decide: Decide
    ) -> None:
        """Call `decide`, at once where no password has to be hashed."""
        if username is None:
            decide(self._anonymous, instant)
        elif self.file.remembers(username, password):
            decide(True, instant)  # noqa: FBT003 - the answer
        elif not self._thread.check(self.file, username, password, decide):
            decide(None, instant)

    def knows(self, earlier: Authenticator, username: str | None) -> bool:
        """Return whether the user's password is the same as it was."""
        if username is None or not isinstance(earlier, PasswordLogins):
            return True
        return self.file.same(earlier.file, username)
