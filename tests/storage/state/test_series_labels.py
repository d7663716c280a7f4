"""What second sources of a series were given is the same after a restart, in bounded memory."""

from pathlib import Path

import pytest

from gateway.storage.state import series_labels
from gateway.storage.state.series_labels import SeriesLabels
from tests.support.disk.storage import open_store

TOPIC = "sensors/n1/temperature"


async def test_labels_are_the_same_after_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(series_labels, "LABELS_MAX", 3)
    store = await open_store(tmp_path)
    labels = SeriesLabels(store.database, store.writer)
    for number in range(4):
        labels.remember(TOPIC, f"serial:a/b ünit {number}", "before")
        labels.remember(TOPIC, f"serial:a/b ünit {number}", f"label {number}")
    labels.remember("sensors/n2/temperature", "x", "gone")
    assert labels.forget("n2") == 1
    await store.close()
    again = await open_store(tmp_path)
    for found in (labels, SeriesLabels(again.database, again.writer)):
        if found is not labels:
            await found.load()
        given = [found.get(TOPIC, f"serial:a/b ünit {number}") for number in range(4)]
        assert given == [None, None, "label 2", "label 3"], "the oldest made room"
        assert found.get("sensors/n2/temperature", "x") is None
    await again.close()
