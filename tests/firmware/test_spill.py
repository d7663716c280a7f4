"""Room on the flash: entries in their order, bounded, and what a flash that fails costs."""

from collections import deque
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from node.buffer import Buffer, Sample
from node.ring import SIZE_MIN as RING_MIN
from node.spill import SEGMENT_BYTES, SIZE_MIN, Spill


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "spill"


def entry(number: int) -> bytes:
    return b"%032d" % number


PER_FILE = SEGMENT_BYTES // (2 + len(entry(0)))


@given(st.lists(st.integers(-80, 80), max_size=20))
def test_entries_come_out_in_their_order(
    tmp_path_factory: pytest.TempPathFactory, steps: list[int]
) -> None:
    """A positive step keeps so many entries, a negative one takes so many."""
    spill = Spill(str(tmp_path_factory.mktemp("spill")), 1 << 20)
    model: deque[bytes] = deque()
    for number, step in enumerate(steps):
        for each in range(abs(step)):
            if step > 0:
                model.append(b"%d/%d" % (number, each) * 30)
                spill.append(model[-1])
            else:
                assert spill.pop() == (model.popleft() if model else None)
        assert len(spill) == len(model)
    assert spill.dropped == 0


def test_the_oldest_file_makes_room(folder: Path) -> None:
    spill = Spill(str(folder), SIZE_MIN)
    for number in range(4 * PER_FILE):
        spill.append(entry(number))
    assert sum(each.stat().st_size for each in folder.iterdir()) <= SIZE_MIN
    assert spill.dropped == PER_FILE
    assert spill.pop() == entry(PER_FILE)
    assert len(spill) == 3 * PER_FILE - 1


def test_the_next_start_begins_with_none(folder: Path) -> None:
    spill = Spill(str(folder), SIZE_MIN)
    for number in range(2 * PER_FILE):
        spill.append(entry(number))
    assert list(folder.iterdir())
    assert len(Spill(str(folder), SIZE_MIN)) == 0
    assert list(folder.iterdir()) == []


def test_what_a_failing_flash_costs_is_counted(folder: Path) -> None:
    spill = Spill(str(folder), SIZE_MIN)
    for number in range(PER_FILE + 1):
        spill.append(entry(number))
    (folder / "0").unlink()
    assert (spill.pop(), spill.dropped) == (None, PER_FILE)
    assert spill.pop() == entry(PER_FILE)
    folder.rmdir()
    for number in range(PER_FILE + 1):
        spill.append(entry(number))
    assert (spill.dropped, len(spill)) == (2 * PER_FILE, 1)
    folder.write_bytes(b"a file in its place")
    assert len(Spill(str(folder), SIZE_MIN)) == 0


def test_a_spill_has_a_least_size(folder: Path) -> None:
    with pytest.raises(ValueError, match="a spill of 8191 bytes: at least 8192"):
        Spill(str(folder), SIZE_MIN - 1)


def test_a_buffer_sends_what_it_spilled_first(folder: Path) -> None:
    spill = Spill(str(folder), SIZE_MIN)
    buffer = Buffer(waiting_bytes=RING_MIN, spill=spill)
    samples = 150
    for number in range(samples):
        wall = number * 1000 + 7 if number % 2 else None
        buffer.add(Sample(number * 1000, wall, [b"%d" % number * 20]))
    assert len(spill)
    sent = []
    while due := buffer.due(0):
        sent += [(each.sequence, each.clock, each.wall, each.readings) for each in due]
        for each in due:
            buffer.acknowledge(each.sequence, refused=False)
    walls = [number * 1000 + 7 if number % 2 else None for number in range(samples)]
    assert sent == [
        (number + 1, number * 1000, walls[number], [b"%d" % number * 20])
        for number in range(samples)
    ]
    assert (buffer.dropped, len(spill)) == (0, 0)


def test_what_cannot_be_read_is_dropped_and_the_next_is_sent(folder: Path) -> None:
    spill = Spill(str(folder), SIZE_MIN)
    buffer = Buffer(waiting_bytes=RING_MIN, spill=spill)
    for number in range(150):
        buffer.add(Sample(number * 1000, None, [b"%d" % number * 20]))
    lost = spill._counts[0]
    (folder / "0").unlink()
    assert buffer.due(0)[0].clock == lost * 1000
    assert (buffer.dropped, len(buffer.due(0))) == (lost, 0)
