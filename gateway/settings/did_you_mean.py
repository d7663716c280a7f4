"""What somebody may have meant who wrote a word that there is not."""

from collections.abc import Iterable

SIMILAR = 0.6
"""How alike two words must be, of 1."""


def meant(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that is most like this one, None if none is like it."""
    from difflib import get_close_matches  # only once something is wrong

    by_letters = {each.lower(): each for each in known}
    for like in get_close_matches(word.lower(), by_letters, 1, SIMILAR):
        return by_letters[like]
    return None


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """Return `; did you mean "X"?` with the known word that is most like it, "" if none is."""
    like = meant(word, known) if isinstance(word, str) else None
    return f'; did you mean "{like}"?' if like else ""
