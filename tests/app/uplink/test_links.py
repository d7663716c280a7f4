"""The way down meets the bounds of the broker here."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gateway.app.parts import Core
from gateway.app.uplink.links import open_down
from gateway.broker.store import StoresNothing
from gateway.mqtt.packets import Publish
from gateway.settings.uplink import DownSettings
from gateway.storage.state.uplink_state import DownSeen
from gateway.uplink import down as down_module
from gateway.uplink.down import Down
from tests.support.broker.broker_harness import Harness
from tests.support.broker.memory_client import MemoryClient
from tests.support.disk.storage import Store, open_store, until


class FullDisk(StoresNothing):
    """What a broker has whose disk takes no more."""

    def accepts(self, size: int) -> bool:
        return False


def _down(harness: Harness, store: Store) -> Down:
    turn = SimpleNamespace(instant=harness.instant, when_on_disk=lambda call: call())
    core = Core(harness.broker, cast("Any", turn), [])
    configured = (DownSettings("all/#", local="{2+}"),)
    seen = DownSeen(store.database, store.writer)
    return open_down("barn", core, configured, seen, store.counters)


def _topics(client: MemoryClient) -> list[str]:
    client.harness.settle()
    return [each.topic for each in client.take() if isinstance(each, Publish)]


async def test_a_message_without_room_goes_to_the_others_unless_the_disk_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(down_module, "RETRY_SECONDS", 0.01)
    monkeypatch.setattr(down_module, "ATTEMPTS_MAX", 3)
    store, harness = await open_store(tmp_path), Harness()
    harness.broker.store, kept = FullDisk(), harness.broker.store
    harness.broker.retained.maximum_messages = 0
    down, subscriber = _down(harness, store), harness.connect("s")
    subscriber.subscribe("#", 0)
    acknowledged: list[int] = []
    for packet_id, topic in enumerate(("all/x", "all/y"), 1):
        publish = Publish(topic, b"1", 1, retain=True, packet_id=packet_id)
        down.receive(publish, lambda each=packet_id: acknowledged.append(each), resumed=False)  # type: ignore[misc]
    await until(lambda: down._tries > 5)
    assert (_topics(subscriber), acknowledged) == ([], [])
    assert "'all/x' came from the fleet and waits: the disk accepts no more messages" in caplog.text
    harness.broker.store = kept
    await until(lambda: acknowledged == [1, 2])
    assert _topics(subscriber) == ["x", "y"]
    assert "'all/y' came from the fleet and waits: there is no space for another retained" in (
        caplog.text
    )
    await store.close()
