"""Whoever fails to log in waits for the answer, and longer each time."""

from typing import Final

MAXIMUM_DELAY: Final = 16.0
"""Seconds that one answer is put off at most."""

FORGOTTEN_AFTER: Final = 600.0
"""Seconds after the last failure from which on the next counts as the first."""

MAXIMUM_KNOWN: Final = 10_000
"""Pairs of address and user name that are known to have failed; beyond them the oldest is
forgotten."""


class FailedLogins:
    """How often pairs of address and user name have failed, and until when they wait.

    So whoever guesses one user's password from one address comes to a few guesses a minute, and
    nobody is kept out from elsewhere. Times are monotonic seconds.
    """

    __slots__ = ("_known", "first_delay")

    def __init__(self, first_delay: float) -> None:
        self.first_delay = first_delay  # seconds
        self._known: dict[int, tuple[int, float]] = {}  # failures, and the end of the delay

    def __len__(self) -> int:
        return len(self._known)

    def wait(self, who: tuple[str, str | None], now: float) -> float:
        """Return the seconds for which a password is not even looked at."""
        known = self._known.get(hash(who))  # of its own size, whatever the user name's is
        return 0.0 if known is None else max(0.0, known[1] - now)

    def add(self, who: tuple[str, str | None], now: float) -> float:
        """Note a failure; return the seconds for which the answer is put off."""
        failures, until = self._known.pop(hash(who), (0, now))
        if now > until + FORGOTTEN_AFTER:
            failures = 0
        delay = min(MAXIMUM_DELAY, self.first_delay * 2.0 ** min(failures, 30))
        self._known[hash(who)] = failures + 1, now + delay
        if len(self._known) > MAXIMUM_KNOWN:
            del self._known[next(iter(self._known))]
        return delay

    def forget(self, who: tuple[str, str | None]) -> None:
        """Note a success."""
        self._known.pop(hash(who), None)
