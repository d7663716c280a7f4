"""Who may connect, and which topics a client may write."""

from typing import Protocol

CONTROL = "$CONTROL/tidegate/"
"""Below this clients ask the gateway itself for something (docs/configuration.md)."""


class Authenticator(Protocol):
    """Decides about the user name and password of a CONNECT."""

    def check(self, username: str | None, password: bytes | None) -> bool:
        """Return True if the client may connect."""
        ...


class Anonymous:
    """Lets everyone in, whatever user name they give."""

    def check(self, username: str | None, password: bytes | None) -> bool:  # noqa: ARG002 - a shape
        """Return True."""
        return True


def may_publish(topic: str) -> bool:
    """Return whether clients may write the topic: `$` topics are the gateway's own."""
    return not topic.startswith("$") or topic.startswith(CONTROL)
