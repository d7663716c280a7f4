"""Suggestions for misspelled words."""

from collections.abc import Iterable

SIMILAR = 0.6
"""How similar two words must be, up to 1."""


def meant(word: str, known: Iterable[str]) -> str | None:
    """Return the most similar known word, None without one."""
    from difflib import get_close_matches  # only once something is wrong

    by_letters = {each.lower(): each for each in known}
    for like in get_close_matches(word.lower(), by_letters, 1, SIMILAR):
        return by_letters[like]
    return None


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """Return `; did you mean "X"?` with the most similar known word, "" without one."""
    like = meant(word, known) if isinstance(word, str) else None
    return f'; did you mean "{like}"?' if like else ""
