"""Who may read and write what, read anew from the rules' text for every question."""

from dataclasses import dataclass

from tests.support.naive.acl import Who, allows

MAIN, SECOND = "main", "second"
"""The listeners of a judge."""


@dataclass(frozen=True, slots=True)
class Login:
    """Whom a connection is of, and by which listener it came."""

    user: str | None = None
    listener: str = MAIN


ANYBODY = Login()
"""A client that gives no user name."""


class Rights:
    """The rules of each listener, in the syntax of an ACL file; None where there are none."""

    def __init__(self) -> None:
        self.rules: dict[str, str | None] = {MAIN: None, SECOND: None}

    @property
    def restrict(self) -> bool:
        """Whether any listener has rules."""
        return any(rules is not None for rules in self.rules.values())

    def may(self, wanted: str, login: Login, client_id: str, topic: str) -> bool:
        """Return whether a client may `read` or `write` a topic now."""
        rules = self.rules[login.listener]
        if topic.startswith("$delay/"):
            topic = topic.split("/", 2)[2]
        return rules is None or allows(rules, Who(login.user, client_id), topic, wanted)
