"""Clients as the configuration names them: an identifier in which `*` stands for any characters."""

from collections.abc import Callable


def client_matcher(pattern: str) -> Callable[[str], bool]:
    """Return a function that says whether a client identifier is one of those meant.

    `*` stands also for no character; every other character stands for itself.
    """
    from gateway.where.language.expression import Wildcard
    from gateway.where.language.like import like_matcher

    return like_matcher(tuple(Wildcard.SEQUENCE if each == "*" else each for each in pattern))
