"""The subscriptions at one place of a table: most places hold exactly one, so no container for it.

A subscription is a number; a place that holds none is None.
"""

import sys

Held = int | set[int] | None


def holds(held: Held, subscription: int) -> bool:
    """Tell whether the subscription is among those held."""
    return subscription in held if isinstance(held, set) else subscription == held


def count(held: Held) -> int:
    """Return how many are held."""
    if isinstance(held, set):
        return len(held)
    return 0 if held is None else 1


def including(held: Held, subscription: int) -> Held:
    """Return what is held with one more; a set is changed in place."""
    if held is None:
        return subscription
    if isinstance(held, int):
        return {held, subscription}
    held.add(subscription)
    return held


def excluding(held: Held, subscription: int) -> Held:
    """Return what is held without one of them; a set is changed in place."""
    if not isinstance(held, set):
        return None
    held.remove(subscription)
    return held.pop() if len(held) == 1 else held


def gather(held: Held, found: list[int]) -> None:
    """Append all that are held."""
    if isinstance(held, int):
        found.append(held)
    elif held is not None:
        found.extend(held)


def size(held: Held) -> int:
    """Return the bytes of the numbers and of what holds them."""
    if held is None:
        return 0
    numbers = sum(map(sys.getsizeof, held)) if isinstance(held, set) else 0
    return sys.getsizeof(held) + numbers
