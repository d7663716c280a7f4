"""What stands at one place of a table: most places hold exactly one, so no container for it.

What is held is hashable and no set; a place that holds nothing is None.
"""

from typing import TypeAlias, TypeVar

_Item = TypeVar("_Item")

Held: TypeAlias = set[_Item] | _Item | None


def count(held: Held[_Item]) -> int:
    """Return how many are held."""
    if isinstance(held, set):
        return len(held)
    return 0 if held is None else 1


def including(held: Held[_Item], item: _Item) -> Held[_Item]:
    """Return what is held with one more; a set is changed in place."""
    if held is None:
        return item
    if not isinstance(held, set):
        return {held, item}
    held.add(item)
    return held


def excluding(held: Held[_Item], item: _Item) -> Held[_Item]:
    """Return what is held without one of them; a set is changed in place."""
    if not isinstance(held, set):
        return None
    held.remove(item)
    return held.pop() if len(held) == 1 else held


def gather(held: Held[_Item], found: list[_Item]) -> None:
    """Append all that are held."""
    if isinstance(held, set):
        found.extend(held)
    elif held is not None:
        found.append(held)
