"""Delays answers to clients that fail to log in, longer each time."""

from typing import Final

MAXIMUM_DELAY: Final = 16.0
"""The longest delay of an answer, in seconds."""

FORGOTTEN_AFTER: Final = 600.0
"""Seconds after the last failure until the count begins again."""

MAXIMUM_KNOWN: Final = 10_000
"""Pairs of address and user name whose failures are counted; beyond that the oldest is
forgotten."""


class FailedLogins:
    """Failures and delays of pairs of address and user name.

    So guessing one user's password from one address is limited to a few attempts a minute, and the
    user can still log in from elsewhere. Times are monotonic seconds.
    """

    __slots__ = ("_known", "first_delay")

    def __init__(self, first_delay: float) -> None:
        self.first_delay = first_delay  # seconds
        self._known: dict[int, tuple[int, float]] = {}  # failures, and the end of the delay

    def __len__(self) -> int:
        return len(self._known)

    def wait(self, who: tuple[str, str | None], now: float) -> float:
        """Return the seconds until the next password is checked."""
        # a hash has one size, whatever the length of the user name
        known = self._known.get(hash(who))
        return 0.0 if known is None else max(0.0, known[1] - now)

    def add(self, who: tuple[str, str | None], now: float) -> float:
        """Note a failure; return the seconds by which the answer is delayed."""
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
