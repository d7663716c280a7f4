"""The collector looks among few objects, however many there are, and forgets none for ever."""

import gc
import sys
import weakref
from collections.abc import Iterator

import pytest

from gateway.cli import interpreter
from gateway.cli.interpreter import (
    FEW_FROZEN,
    MIDDLE_COLLECTIONS,
    THAWED_AFTER,
    YOUNG_OBJECTS,
    Freezer,
    set_up_collector,
)

pytestmark = pytest.mark.skipif(
    sys.version_info >= (3, 14), reason="Python 3.14 has another collector"
)

LASTING = 40 * YOUNG_OBJECTS


class Cycle:
    """Something that only the collector can free."""

    def __init__(self) -> None:
        self.me = self


@pytest.fixture
def looks() -> Iterator[list[int]]:
    """Give how many objects each look was at."""
    seen: list[int] = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            seen.append(sum(len(gc.get_objects(each)) for each in range(info["generation"] + 1)))

    before, callbacks = gc.get_threshold(), list(gc.callbacks)
    gc.collect()
    set_up_collector()
    gc.callbacks.append(note)
    yield seen
    gc.callbacks[:] = callbacks
    gc.set_threshold(*before)
    gc.unfreeze()
    gc.collect()
    gc.freeze()  # as it was for all tests


@pytest.mark.uncovered
def test_no_look_is_at_all_that_lasts(looks: list[int]) -> None:
    lasting = [[number] for number in range(LASTING)]
    assert len(lasting) == LASTING
    assert len(looks) > LASTING // YOUNG_OBJECTS // 2
    assert max(looks) < 4 * (MIDDLE_COLLECTIONS + 1) * YOUNG_OBJECTS


@pytest.mark.uncovered
def test_what_became_a_cycle_after_it_was_frozen_is_found(
    looks: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interpreter, "FEW_FROZEN", sys.maxsize)  # this process has very many
    one = Cycle()
    gone = weakref.ref(one)
    gc.collect()
    del one
    gc.collect()
    assert gone() is not None
    for _ in range(THAWED_AFTER):
        gc.collect()
    assert gone() is None
    assert max(looks) > 4 * YOUNG_OBJECTS


@pytest.mark.uncovered
def test_very_many_objects_are_thawed_once_an_hour(looks: list[int]) -> None:
    lasting = [[number] for number in range(2 * FEW_FROZEN)]
    gc.collect()
    looks.clear()
    for _ in range(3 * THAWED_AFTER):
        gc.collect()
    assert max(looks) < FEW_FROZEN
    (freezer,) = (each for each in gc.callbacks if isinstance(each, Freezer))
    freezer._thaws_at = 0.0  # the hour is over
    for _ in range(3 * THAWED_AFTER):
        gc.collect()
    assert sum(each > len(lasting) for each in looks) == 1
