"""Who may log in, in a test's hands."""

from gateway.broker.connecting.connection_info import Credentials, Decide
from gateway.broker.instant import Instant


class Users:
    """Lets in the users with these passwords; all of its decisions can be put off."""

    proves = True

    def __init__(self, *, later: bool = False, **passwords: str) -> None:
        self._passwords = passwords
        self._later = later
        self.waiting: list[tuple[bool, Decide]] = []

    def check(self, credentials: Credentials, instant: Instant, decide: Decide) -> None:
        _, username, password = credentials
        right = username is not None and self._passwords.get(username) == (password or b"").decode()
        if self._later:
            self.waiting.append((right, decide))
        else:
            decide(right, instant)

    def answer(self, instant: Instant) -> None:
        """Decide about the one that has waited longest."""
        right, decide = self.waiting.pop(0)
        decide(right, instant)
