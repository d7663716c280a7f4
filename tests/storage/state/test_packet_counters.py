"""Counters of encrypted packets are remembered across restarts, in bounded memory."""

from pathlib import Path

import pytest

from gateway.storage.state import packet_counters
from gateway.storage.state.packet_counters import PacketCounters
from tests.support.disk.storage import open_store

KEY, OTHER = b"k" * 32, b"o" * 32


async def test_counters_are_the_same_after_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packet_counters, "DEVICES_MAX", 3)
    store = await open_store(tmp_path)
    counters = PacketCounters(store.database, store.writer)
    for address, key, counter in [("a", KEY, 7), ("b", KEY, 8), ("a", OTHER, 1), ("a", KEY, 9)]:
        counters.remember(address, key, counter)
    counters.remember("c", KEY, 2**32 - 1)
    await store.close()
    again = await open_store(tmp_path)
    for found in (counters, PacketCounters(again.database, again.writer)):
        if found is not counters:
            await found.load()
        last = [found.last(*each) for each in [("a", KEY), ("b", KEY), ("a", OTHER), ("c", KEY)]]
        assert last == [9, -1, 1, 2**32 - 1], "the one that was silent the longest is forgotten"
    await again.close()
