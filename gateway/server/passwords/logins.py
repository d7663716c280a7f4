"""Checks passwords in a thread: a good hash takes longer than other clients can wait."""

import logging
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

from gateway.broker.connecting.connection_info import Credentials, Decide
from gateway.broker.connecting.failed_logins import FailedLogins
from gateway.broker.instant import Instant
from gateway.server.passwords.file import PasswordFile

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future

logger = logging.getLogger(__name__)

MAXIMUM_WAITING = 1_000
"""Passwords of all listeners that wait for the thread; a further CONNECT is refused with 0x97."""

MAXIMUM_OF_ONE = 500
"""The most of these from one address."""


class PasswordLogins:
    """Accepts the users of a password file, and clients without a user name if configured so.

    The `file` can be replaced; pending logins then use the new one.
    """

    proves = True

    def __init__(self, file: PasswordFile, thread: "PasswordThread", *, anonymous: bool) -> None:
        self.file = file
        self._thread = thread
        self.anonymous = anonymous

    def check(self, credentials: Credentials, instant: Instant, decide: Decide) -> None:
        """Call `decide`, at once if no password must be hashed."""
        username = credentials.username
        if username is None:
            decide(self.anonymous, instant)
        elif self.file.remembers(username, credentials.password):
            decide(True, instant)  # noqa: FBT003 - the answer
        elif not self._thread.check(self, credentials, decide):
            decide(None, instant)


class Waiting(NamedTuple):
    """A password to be hashed, with its file and the callback for the answer."""

    logins: PasswordLogins
    credentials: Credentials
    decide: Decide


class PasswordThread:
    """One thread for all passwords, which leaves other cores to accepted clients.

    Addresses alternate, so a sender of many passwords delays only itself. Before a password is
    hashed, two checks may answer it: its user and address have `failed` meanwhile, or it was found
    right. So concurrent guesses get one answer, and a fleet that has one user waits for one hash.
    """

    def __init__(
        self, loop: "AbstractEventLoop", now: Callable[[], Instant], failed: FailedLogins
    ) -> None:
        self._loop = loop
        self._now = now
        self._failed = failed
        self._executor: ThreadPoolExecutor | None = None
        self._waiting: dict[str, deque[Waiting]] = {}  # by address; the first is next
        self._count = 0
        self._busy = False

    def check(self, logins: PasswordLogins, credentials: Credentials, decide: Decide) -> bool:
        """Call `decide` in a later turn, or return False if too many wait.

        A result is void if failures delay its user and address meanwhile.
        """
        own = self._waiting.get(credentials.address, ())
        if self._count >= MAXIMUM_WAITING or len(own) >= MAXIMUM_OF_ONE:
            return False
        self._add(Waiting(logins, credentials, decide))
        if not self._busy:
            self._begin_next()
        return True

    def close(self) -> None:
        """Stop checking; pending logins get no answer."""
        self._waiting.clear()
        if self._executor is not None:
            self._executor.shutdown(wait=False, cancel_futures=True)

    def _add(self, one: Waiting) -> None:
        self._waiting.setdefault(one.credentials.address, deque()).append(one)
        self._count += 1

    def _pop(self) -> Waiting:
        address, own = next(iter(self._waiting.items()))
        del self._waiting[address]
        one = own.popleft()
        self._count -= 1
        if own:
            self._waiting[address] = own
        return one

    def _begin_next(self) -> None:
        self._busy = bool(self._waiting)
        if not self._busy:
            return
        one = self._pop()
        _, username, password = one.credentials
        known = one.logins.file.remembers(username, password)
        if known or self._failed.wait(one.credentials[:2], self._now().monotonic):
            self._loop.call_soon(self._begin_next)  # after other clients were served
            one.decide(known, self._now())
        else:
            self._hash(one)

    def _hash(self, one: Waiting) -> None:
        if self._executor is None:
            self._executor = ThreadPoolExecutor(1, "passwords")
        file = one.logins.file
        _, username, password = one.credentials
        checking = self._loop.run_in_executor(self._executor, file.check, username, password)

        def checked(found: "Future[bool]") -> None:
            if found.cancelled():
                return
            try:
                if one.logins.file is not file:
                    self._add(one)
                elif (error := found.exception()) is None:
                    one.decide(found.result(), self._now())
                else:  # scrypt may need 128 MiB
                    logger.error("the password of user %.80r cannot be hashed: %s", username, error)
                    one.decide(None, self._now())
            finally:
                self._begin_next()

        checking.add_done_callback(checked)
