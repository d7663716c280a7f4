"""Passwords are checked in a thread: a good hash takes longer than others can wait."""

from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from gateway.broker.access import Authenticator, Credentials, Decide
from gateway.broker.instant import Instant
from gateway.server.passwords.file import PasswordFile

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future

MAXIMUM_WAITING = 1_000
"""Passwords of all listeners that wait for the thread; who comes then is refused with 0x97."""

MAXIMUM_OF_ONE = 500
"""Passwords from one address of these."""

Waiting = tuple[PasswordFile, Credentials, Decide]


class PasswordThread:
    """One thread for all passwords: the rest of the machine is for those who are in already.

    Addresses take turns, so that whoever sends many passwords keeps himself waiting.
    """

    def __init__(self, loop: "AbstractEventLoop", now: Callable[[], Instant]) -> None:
        self._loop = loop
        self._now = now
        self._executor: ThreadPoolExecutor | None = None
        self._waiting: dict[str, deque[Waiting]] = {}  # by address; the first has its turn
        self._count = 0
        self._busy = False

    def check(self, file: PasswordFile, credentials: Credentials, decide: Decide) -> bool:
        """Call `decide` in a later turn, or return False if too many wait."""
        address = credentials.address
        own = self._waiting.get(address, ())
        if self._count >= MAXIMUM_WAITING or len(own) >= MAXIMUM_OF_ONE:
            return False
        self._waiting.setdefault(address, deque()).append((file, credentials, decide))
        self._count += 1
        if not self._busy:
            self._begin_next()
        return True

    def close(self) -> None:
        """Check no more; who still waits gets no answer."""
        self._waiting.clear()
        if self._executor is not None:
            self._executor.shutdown(wait=False, cancel_futures=True)

    def _begin_next(self) -> None:
        self._busy = bool(self._waiting)
        if not self._busy:
            return
        address, own = next(iter(self._waiting.items()))
        del self._waiting[address]
        file, credentials, decide = own.popleft()
        self._count -= 1
        if own:
            self._waiting[address] = own
        if self._executor is None:
            self._executor = ThreadPoolExecutor(1, "passwords")
        checking = self._loop.run_in_executor(
            self._executor, file.check, credentials.username, credentials.password
        )

        def checked(found: "Future[bool]") -> None:
            if found.cancelled():
                return
            try:
                decide(found.result(), self._now())
            finally:
                self._begin_next()

        checking.add_done_callback(checked)


class PasswordLogins:
    """Lets in the users of a password file, and those without a user name if it says so."""

    proves = True

    def __init__(self, file: PasswordFile, thread: PasswordThread, *, anonymous: bool) -> None:
        self.file = file
        self._thread = thread
        self._anonymous = anonymous

    def check(self, credentials: Credentials, instant: Instant, decide: Decide) -> None:
        """Call `decide`, at once where no password has to be hashed."""
        username = credentials.username
        if username is None:
            decide(self._anonymous, instant)
        elif self.file.remembers(username, credentials.password):
            decide(True, instant)  # noqa: FBT003 - the answer
        elif not self._thread.check(self.file, credentials, decide):
            decide(None, instant)

    def knows(self, earlier: Authenticator, username: str | None) -> bool:
        """Return whether the user's password is the same as it was."""
        if username is None or not isinstance(earlier, PasswordLogins):
            return True
        return self.file.same(earlier.file, username)
