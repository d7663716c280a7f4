"""How Python's garbage collector looks for cycles: in pieces that no client notices."""

import gc
import sys

YOUNG_OBJECTS = 5_000
"""Objects that may be made before the collector looks for cycles among them. What comes and goes
with messages has none, nor has a client's plain connection. With Python's 700 a tenth of what a
connection costs went into looking."""

YOUNG_LOOKS = 1
"""Looks among the young, beyond which the next takes those along that earlier ones passed: some
10,000 objects, 2 to 4 ms."""

MIDDLE_LOOKS = 2
"""Such second looks, beyond which the next takes along all that is not frozen: some 30,000 objects,
10 ms."""

THAWED_AFTER = 8
"""Looks at all that is not frozen, of which the last thaws everything: what lasted long and became
a cycle then, as parts of asyncio do, is found after 240,000 objects more, which
are some 50 MB at most."""


class Freezer:
    """Freezes what outlasts a look, so that the next one need not look at it again.

    A look at all objects of a gateway with 90,000 retained messages takes 80 ms, in one piece.
    """

    def __init__(self) -> None:
        self._looks = 0

    def __call__(self, phase: str, info: dict[str, int]) -> None:
        """Take part in a look, as `gc.callbacks` are told of it."""
        if info["generation"] != 2:
            return
        if phase == "stop":
            gc.freeze()
            return
        self._looks += 1
        if self._looks == THAWED_AFTER:
            self._looks = 0
            gc.unfreeze()


def set_up_collector() -> None:
    """Have the collector look seldom, and then among few objects."""
    gc.freeze()  # what was imported stays
    gc.collect()  # of nothing: how much outlasts a look decides when the next is
    if sys.version_info >= (3, 14):
        gc.set_threshold(YOUNG_OBJECTS)  # it looks at the old in pieces of its own
    else:
        gc.set_threshold(YOUNG_OBJECTS, YOUNG_LOOKS, MIDDLE_LOOKS)
        gc.callbacks.append(Freezer())
