"""Room on the flash: entries in their order, bounded, and found again after a power cut."""

import shutil
import struct
from collections import deque
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from node.buffer import Buffer, Sample
from node.ring import SIZE_MIN as RING_MIN
from node.saving import save
from node.spill import _SIZE_MIN, SEGMENT_BYTES, Spill

BOOT = 0xB0071
"""Of the present start, where a test has only one."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "spill"


def entry(number: int) -> bytes:
    return b"%032d" % number


PER_FILE = (SEGMENT_BYTES - 18) // (4 + len(entry(0)))


def fill(spill: Spill, entries: int, first: int = 0) -> None:
    for number in range(first, first + entries):
        spill.append(number + 1, 1000 * number, entry(number))


def take(spill: Spill) -> tuple[int, int, int, bytes] | None:
    """Take an entry and acknowledge it."""
    taken = spill.pop()
    if taken is not None:
        spill.settle()
    return taken


def drain(spill: Spill) -> list[tuple[int, int]]:
    """Return boot id and number of all that is left."""
    found = []
    while not spill.empty:
        taken = take(spill)
        if taken is not None:
            found.append(taken[:2])
    return found


@given(st.lists(st.integers(-80, 80), max_size=20))
def test_entries_come_out_in_their_order(
    tmp_path_factory: pytest.TempPathFactory, steps: list[int]
) -> None:
    """A positive step keeps so many entries, a negative one takes so many."""
    spill = Spill(str(tmp_path_factory.mktemp("spill")), 1 << 20, BOOT)
    model: deque[tuple[int, bytes]] = deque()
    number = 0
    for step in steps:
        for _ in range(abs(step)):
            if step > 0:
                number += 1
                model.append((number, b"%d" % number * 30))
                spill.append(number, number, model[-1][1])
            elif model:
                expected = model.popleft()
                assert take(spill) == (BOOT, expected[0], 0, expected[1])
            else:
                assert take(spill) is None
        assert spill.empty == (not model)
        if not model:
            spill = Spill(str(tmp_path_factory.mktemp("spill")), 1 << 20, BOOT)
    assert spill.dropped == 0


def test_the_oldest_file_makes_room(folder: Path) -> None:
    spill = Spill(str(folder), _SIZE_MIN, BOOT)
    fill(spill, 4 * PER_FILE)
    assert sum(each.stat().st_size for each in folder.iterdir()) <= _SIZE_MIN
    assert spill.dropped == PER_FILE
    assert drain(spill) == [(BOOT, number + 1) for number in range(PER_FILE, 4 * PER_FILE)]
    assert spill.pop() is None


def test_a_file_stays_until_all_of_it_is_acknowledged(folder: Path) -> None:
    spill = Spill(str(folder), 1 << 20, BOOT)
    fill(spill, 2 * PER_FILE + 1)
    for _ in range(PER_FILE):
        spill.pop()
    assert spill.pop() is None
    assert sorted(each.name for each in folder.iterdir()) == ["16", "17"]
    for _ in range(PER_FILE):
        spill.settle()
    taken = spill.pop()
    assert taken is not None
    assert taken[1] == PER_FILE + 1
    assert [each.name for each in folder.iterdir()] == ["17"]


def test_the_next_start_finds_what_was_left(folder: Path) -> None:
    """With the boot id and the numbers that it had, and how long that start lasted at least."""
    spill = Spill(str(folder), 1 << 20, BOOT)
    fill(spill, 3 * PER_FILE + 1)
    for _ in range(PER_FILE + 3):
        take(spill)
    after = Spill(str(folder), 1 << 20, BOOT + 1)
    fill(after, PER_FILE + 1)
    first = after.pop()
    assert first == (BOOT, PER_FILE + 1, 1000 * (3 * PER_FILE - 1), entry(PER_FILE))
    after.settle()
    left = [(BOOT, number + 1) for number in range(PER_FILE + 1, 3 * PER_FILE)]
    assert drain(after) == left + [(BOOT + 1, number + 1) for number in range(PER_FILE + 1)]
    assert drain(Spill(str(folder), 1 << 20, BOOT + 2)) == []


@given(st.data())
def test_a_damaged_file_costs_what_is_damaged_and_no_more(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("spill")
    fill(Spill(str(folder), 1 << 20, BOOT), 2 * PER_FILE + 1)
    content = bytearray((folder / "16").read_bytes())
    place = data.draw(st.integers(18, len(content) - 1), "place")
    if data.draw(st.booleans(), "cut off"):
        content = content[:place]
    else:
        content[place] ^= data.draw(st.integers(1, 255), "bits")
    (folder / "16").write_bytes(content)
    spill = Spill(str(folder), 1 << 20, BOOT + 1)
    whole = (place - 18) // (4 + len(entry(0)))
    found = drain(spill)
    assert found[:whole] == [(BOOT, number + 1) for number in range(whole)]
    assert found[-PER_FILE:] == [(BOOT, number + 1) for number in range(PER_FILE, 2 * PER_FILE)]
    assert spill.dropped + len(found) == 2 * PER_FILE


def test_what_a_failing_flash_costs_is_counted(folder: Path) -> None:
    spill = Spill(str(folder), _SIZE_MIN, BOOT)
    fill(spill, PER_FILE + 1)
    (folder / "16").write_bytes(b"half a head")
    assert drain(spill) == [(BOOT, PER_FILE + 1)]
    shutil.rmtree(folder)
    fill(spill, PER_FILE + 1)
    assert spill.dropped == PER_FILE
    assert drain(spill) == [(BOOT, PER_FILE + 1)]
    folder.write_bytes(b"a file in its place")
    assert Spill(str(folder), _SIZE_MIN, BOOT).empty


def test_a_spill_has_a_least_size(folder: Path) -> None:
    with pytest.raises(ValueError, match="a spill of 8191 bytes: at least 8192"):
        Spill(str(folder), _SIZE_MIN - 1, BOOT)


SAMPLES = 250
Sent = tuple[int | None, int, int, int | None, list[bytes]]


def sample(number: int) -> Sample:
    wall = number * 1000 + 7 if number % 2 else None
    return Sample(number * 1000, wall, [b"%d" % number * 20])


def buffer_of(folder: Path, boot: int) -> Buffer:
    spill = Spill(str(folder), 1 << 20, boot)
    return Buffer(waiting_bytes=RING_MIN, spill=spill, boot=boot)


def send_all(buffer: Buffer, stop: int = 1 << 30) -> list[Sent]:
    """Acknowledge everything, up to a number of samples; return what was sent."""
    sent: list[Sent] = []
    while len(sent) < stop and (due := buffer.due(0)):
        sent += [(each.boot, each.sequence, each.clock, each.wall, each.readings) for each in due]
        for each in due:
            buffer.acknowledge(each.sequence, refused=False, boot=each.boot)
    return sent


def expected(boot: int | None, first: int, last: int) -> list[Sent]:
    whole = [sample(number) for number in range(first, last)]
    return [(boot, each.clock // 1000 + 1, each.clock, each.wall, each.readings) for each in whole]


def test_a_buffer_sends_what_it_spilled_first(folder: Path) -> None:
    buffer = buffer_of(folder, BOOT)
    for number in range(SAMPLES):
        buffer.add(sample(number))
    assert send_all(buffer) == expected(None, 0, SAMPLES)
    assert buffer.dropped == 0


@given(st.lists(st.integers(0, SAMPLES), min_size=1, max_size=4))
def test_a_power_cut_at_any_moment_renames_nothing_that_was_spilled(
    tmp_path_factory: pytest.TempPathFactory, cuts: list[int]
) -> None:
    """Each start samples, sends so many of what it has, and ends."""
    folder = tmp_path_factory.mktemp("spill")
    named: dict[tuple[int, int], Sent] = {}
    for boot, cut in enumerate(cuts, start=1):
        buffer = buffer_of(folder, boot)
        for number in range(SAMPLES):
            buffer.add(sample(number))
        on_flash = sum(
            struct.unpack("<IIQH", each.read_bytes()[:18])[3] for each in folder.iterdir()
        )
        assert on_flash > SAMPLES // 4
        for each in send_all(buffer, cut):
            name = (boot if each[0] is None else each[0], each[1])
            assert named.setdefault(name, each)[2:] == each[2:]
    last = buffer_of(folder, len(cuts) + 1)
    for each in send_all(last):
        assert each[0] is not None
        assert named.setdefault((each[0], each[1]), each)[2:] == each[2:]
    # Of each start, all that was written came, without a gap.
    for boot in range(1, len(cuts) + 1):
        numbers = sorted(number for of, number in named if of == boot)
        assert numbers == list(range(1, len(numbers) + 1))
        assert len(numbers) > SAMPLES // 4
    assert list(folder.iterdir()) == []


def test_the_age_of_an_earlier_sample_leaves_out_the_time_without_power(folder: Path) -> None:
    buffer = buffer_of(folder, BOOT)
    for number in range(SAMPLES):
        buffer.add(sample(number))
    ended = max(struct.unpack("<IIQH", each.read_bytes()[:18])[2] for each in folder.iterdir())
    (first, *_) = buffer_of(folder, BOOT + 1).due(0)
    assert (first.boot, first.clock, first.taken) == (BOOT, 0, -ended)


def test_an_earlier_start_and_the_present_one_do_not_share_a_window(folder: Path) -> None:
    before = buffer_of(folder, BOOT)
    for number in range(SAMPLES):
        before.add(sample(number))
    buffer = buffer_of(folder, BOOT + 1)
    buffer.add(sample(0))
    while due := buffer.due(0):
        assert len({each.boot for each in due}) == 1
        for each in due[1:]:
            buffer.acknowledge(each.sequence, refused=False, boot=each.boot)
        assert {each.boot for each in buffer.due(0)} <= {due[0].boot}
        buffer.acknowledge(due[0].sequence, refused=False, boot=due[0].boot)
    assert buffer.oldest is None


def test_what_cannot_be_read_is_dropped_and_the_next_is_sent(folder: Path) -> None:
    buffer = buffer_of(folder, BOOT)
    for number in range(SAMPLES):
        buffer.add(sample(number))
    (count,) = struct.unpack("<H", (folder / "16").read_bytes()[16:18])
    (folder / "16").write_bytes(b"")
    (first, *_) = buffer.due(0)
    assert first.clock == count * 1000


def frames(buffer: Buffer) -> list[tuple[int | None, int, int]]:
    """Return boot id, number and clock of all that is sent when each frame is acknowledged."""
    found = []
    while due := buffer.due(0):
        for sample in due:
            found.append((sample.boot, sample.sequence, sample.clock))
            buffer.acknowledge(sample.sequence, refused=False, boot=sample.boot)
    return found


SAVED_SHAPES = [
    # bytes of a spill (0: none), samples, numbers acknowledged before, of those first sent
    (0, 3, ()),
    (0, 12, (2, 3, 5, 7)),
    (0, 400, (1,)),
    (1 << 20, 12, (2,)),
    (1 << 20, 30, ()),  # some are to become a file
    (1 << 20, 400, (4,)),  # files as well
    (1 << 20, 400, tuple(range(1, 60))),  # some of a file are in the window
]


def test_what_is_saved_is_sent_by_the_next_start(tmp_path: Path) -> None:
    """In the order of their numbers; of a file also what the gateway has seen."""
    wrong = {}
    for number, (size, samples, acknowledged) in enumerate(SAVED_SHAPES):
        folder = str(tmp_path / str(number))
        spill = Spill(folder, size, BOOT)
        memory = RING_MIN if size else 1 << 14
        buffer = Buffer(0, memory, spill if size else None, BOOT)
        for clock in range(samples):
            buffer.add(Sample(clock, None, [b"%032d" % (clock * 7919)]))
            buffer.due(clock)
        for sequence in acknowledged:
            buffer.acknowledge(sequence, refused=False)
            buffer.due(samples)
        save(buffer, spill if size else None, folder, BOOT, lambda: None)
        names = [(BOOT, each + 1, each) for each in range(samples) if each + 1 not in acknowledged]
        after = Spill(folder, 0, BOOT + 1)
        again = Buffer(0, 1 << 14, after, BOOT + 1)
        again.add(Sample(5, None, [b"new"]))
        sent = frames(again)
        known = [each for each in sent if each[0] is None or each[1] not in acknowledged]
        if known != [*names, (None, 1, 5)] or list(Path(folder).iterdir()):
            wrong[number] = sent
    assert wrong == {}


def test_a_node_without_a_spill_drops_beside_what_was_saved(folder: Path) -> None:
    before = Buffer(0, RING_MIN, None, BOOT)
    before.add(Sample(1, None, [b"x"]))
    save(before, None, str(folder), BOOT, lambda: None)
    after = Spill(str(folder), 0, BOOT + 1)
    buffer = Buffer(0, RING_MIN, after, BOOT + 1)
    for clock in range(100):
        buffer.add(Sample(clock, None, [b"%032d" % (clock * 7919)]))
    assert len(list(folder.iterdir())) == 1
    assert frames(buffer)[0] == (BOOT, 1, 1)
    assert buffer.dropped > 40
    assert after.dropped == 0


def test_saving_leaves_room_for_a_version(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest make room beyond it; a flash that fails there costs what is not written."""
    blocks = 196_608 // 4096 + 2
    monkeypatch.setattr("os.statvfs", lambda _path: (4096, 4096, 256, blocks))
    buffer = Buffer(0, 1 << 14, None, BOOT)
    for clock in range(400):
        buffer.add(Sample(clock, None, [b"%032d" % (clock * 7919)]))
    save(buffer, None, str(folder), BOOT, lambda: None)
    left = drain(Spill(str(folder), 0, BOOT + 1))
    assert left == [(BOOT, number) for number in range(401 - len(left), 401)]
    assert 90 < len(left) < 200

    def fail(_path: str) -> None:
        raise OSError(5)

    monkeypatch.setattr("os.statvfs", fail)
    buffer.add(Sample(400, None, [b"x"]))
    save(buffer, None, str(folder), BOOT, lambda: None)
    assert drain(Spill(str(folder), 0, BOOT + 1)) == [(BOOT, 401)]
