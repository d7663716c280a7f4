"""How a gateway has Python work: the garbage collector in pieces, asyncio without OpenSSL."""

import gc
import importlib
import sys
import time

from gateway.config.configuration import Configuration


def needs_tls(configuration: Configuration) -> bool:
    """Return whether a listener has a certificate, or an uplink a broker that may have one."""
    return any(uplink.url is not None for uplink in configuration.uplinks) or any(
        listener.tls_certificate is not None for listener in configuration.listeners
    )


def import_asyncio(*, tls: bool) -> None:
    """Bring asyncio into memory, without its TLS unless that is wanted: it takes 4 MiB.

    asyncio does without the ssl module as on a Python that was built without it: its own
    connections can then use no TLS. Whoever imports ssl later gets it.
    """
    if tls or "ssl" in sys.modules:
        return
    sys.modules["ssl"] = None  # type: ignore[assignment]  # how Python is told that there is none
    try:
        importlib.import_module("asyncio")
    finally:
        del sys.modules["ssl"]


YOUNG_OBJECTS = 5_000
"""Objects that may be made before the collector searches them for cycles. What comes and goes
with messages has none, nor has a client's plain connection. With Python's 700 a tenth of what a
connection costs went into collections."""

YOUNG_COLLECTIONS = 0
"""Threshold of generation 1: one pass then covers some 10,000 objects, 2 to 6 ms."""

MIDDLE_COLLECTIONS = 0
"""Threshold of generation 2: a pass covers all that is not frozen, some 15,000 objects, and
takes up to 10 ms where they are in no cache."""

THAWED_AFTER = 16
"""Collections of generation 2, of which the last thaws everything: what lasted long and became
a cycle then, as parts of asyncio do, is found after 240,000 objects more, which
are some 50 MB at most."""

FEW_FROZEN = 40_000
"""Frozen objects that are thawed whenever that is due, of which 24,000 are the program: to search
them takes some 10 ms, and of 100,000, most of them parts of compiled expressions, 40."""

BETWEEN_THAWS = 3600.0
"""Seconds between two searches of everything where more than that is frozen: with 90,000 retained
messages it takes 80 ms, in one piece, and a client can cause them as often as it likes."""


class Freezer:
    """Freezes what outlasts a collection, so that the next one passes over it.

    It counts what it freezes: to have Python count takes 40 ms of a million objects.
    """

    def __init__(self) -> None:
        self._collections = 0
        self._frozen = gc.get_freeze_count()  # at most: some will have gone
        self._thaws_at = time.monotonic() + BETWEEN_THAWS

    def __call__(self, phase: str, info: dict[str, int]) -> None:
        """Take part in a collection (`gc.callbacks`)."""
        if info["generation"] != 2:
            return
        if phase == "stop":
            self._frozen += len(gc.get_objects(generation=2))
            gc.freeze()
            return
        self._collections += 1
        if self._collections == THAWED_AFTER:
            self._collections = 0
            if self._may_thaw():
                self._frozen = 0
                gc.unfreeze()

    def _may_thaw(self) -> bool:
        if self._frozen <= FEW_FROZEN:
            return True
        now = time.monotonic()
        if now < self._thaws_at:
            return False
        self._thaws_at = now + BETWEEN_THAWS
        return True


def set_up_collector() -> None:
    """Have the collector search seldom, and then few objects."""
    gc.freeze()  # what was imported stays
    gc.collect()  # of nothing: how much outlasts a collection decides when the next is
    if sys.version_info >= (3, 14):
        gc.set_threshold(YOUNG_OBJECTS)  # it searches the old in pieces of its own
    else:
        gc.set_threshold(YOUNG_OBJECTS, YOUNG_COLLECTIONS, MIDDLE_COLLECTIONS)
        gc.callbacks.append(Freezer())
