"""Text that others wrote, for a terminal."""


def printable(text: str) -> str:
    """Return the text without what would move a terminal's cursor or colour what follows."""
    return "".join(each if each.isprintable() else "?" for each in text)
