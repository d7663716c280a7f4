"""Repeated frames are recognised within a window, across restarts, in bounded memory."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.storage.state.node_frames import BOOTS_OF_A_NODE, MAX_NODES, WINDOW, NodeFrames
from tests.support.disk.storage import Store, open_store

LARGEST = 2**32 - 1


class _NoWriter:
    """Takes rows and forgets them: the property below is about what is in memory."""

    def add(self, statement: str, row: tuple[object, ...], within: float | None) -> int:
        return 0


def test_a_frame_is_seen_once_it_was_remembered(store: Store) -> None:
    frames = store.node_frames
    assert not frames.seen("n1", 7, 0)
    frames.remember("n1", 7, 0)
    assert frames.seen("n1", 7, 0)
    assert not frames.seen("n1", 7, 1)
    assert not frames.seen("n1", 8, 0)
    assert not frames.seen("n2", 7, 0)


@pytest.mark.uncovered
@given(st.lists(st.integers(0, 300), max_size=200))
def test_it_agrees_with_a_set_within_the_window(sequences: list[int]) -> None:
    frames = NodeFrames(None, _NoWriter())  # type: ignore[arg-type]  # neither is asked
    taken: set[int] = set()
    for sequence in sequences:
        too_old = bool(taken) and max(taken) - sequence >= WINDOW
        assert frames.seen("n1", 1, sequence) == (sequence in taken or too_old)
        frames.remember("n1", 1, sequence)
        taken.add(sequence)


async def test_it_is_the_same_after_a_restart(tmp_path: Path) -> None:
    store = await open_store(tmp_path)
    for sequence in (LARGEST - 70, LARGEST - 2, LARGEST):
        store.node_frames.remember("n", LARGEST, sequence)
    store.node_frames.remember("n5", 1, 0)
    await store.close()
    again = await open_store(tmp_path)
    frames = again.node_frames
    reported = {behind for behind in range(WINDOW) if frames.seen("n", LARGEST, LARGEST - behind)}
    assert reported == {0, 2}
    assert frames.seen("n5", 1, 0)
    assert not frames.seen("n5", 1, 1)
    await again.close()


async def test_a_frame_is_on_disk_with_the_batch_of_its_readings(store: Store) -> None:
    batch = store.writer.add("INSERT INTO meta VALUES (?, ?)", ("reading", 1))
    store.node_frames.remember("n1", 1, 1)
    assert store.writer.commit_number() == batch


async def test_frames_of_a_longer_class_share_a_commit(store: Store) -> None:
    before = store.counters.count("tidegate/storage/commits")
    for sequence in range(1, 8):
        store.node_frames.remember("n1", 1, sequence, 60.0)
        store.writer.hand_over()
    assert store.writer.commit_number() == store.writer.batch  # what an acknowledgement waits for
    store.node_frames.remember("n1", 1, 8, 0.0)
    await store.settle()
    assert store.counters.count("tidegate/storage/commits") == before + 1


async def test_old_boots_and_silent_nodes_make_room_in_memory_and_on_disk(tmp_path: Path) -> None:
    store = await open_store(tmp_path)
    for boot in range(BOOTS_OF_A_NODE + 1):
        store.node_frames.remember("n1", boot, 9)
        store.node_frames.remember("n1", 0, boot)  # in use: it stays
    for node in range(2, MAX_NODES + 1):
        store.node_frames.remember(f"n{node}", 1, 1)
    store.node_frames.remember("n1", 0, 100)
    store.node_frames.remember(f"n{MAX_NODES + 1}", 1, 1)  # node 2 is the most silent one
    await store.close()
    again = await open_store(tmp_path)
    for frames in (store.node_frames, again.node_frames):
        assert [frames.seen("n1", boot, 9) for boot in range(1, 5)] == [False, True, True, True]
        assert frames.seen("n1", 0, 100)
        assert not frames.seen("n2", 1, 1)
        assert frames.seen("n3", 1, 1)
    count = "SELECT count(*) FROM node_frames"
    rows = await again.database.reader.query(count, (), lambda cursor: cursor.fetchone()[0])
    assert rows == MAX_NODES - 1 + BOOTS_OF_A_NODE
    await again.close()
