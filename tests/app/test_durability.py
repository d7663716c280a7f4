from gateway.app.durability import durability_entries, show_durability
from gateway.broker.publishing.durability_classes import DurabilityEntry
from gateway.config.settings import (
    Configuration,
    DurabilityConfig,
    ListenerConfig,
    StorageConfig,
)
from gateway.counters import Counters

CONFIGURATION = Configuration(
    "file",
    "barn",
    listeners=(ListenerConfig(), ListenerConfig(durability="memory")),
    storage=StorageConfig(durability="batch(50)", commit_delay=7),
    durability=(
        DurabilityConfig("memory", topic="position/+"),
        DurabilityConfig("batch(20)", client="sensor-*"),
    ),
)


def shown(configuration: Configuration, *, durable: bool = True) -> dict[str, object]:
    counters = Counters()
    show_durability(configuration, counters, durable=durable)
    return {
        name.removeprefix("tidegate/storage/"): value for name, value in counters.values.items()
    }


def test_entries_arrive_in_their_order() -> None:
    assert durability_entries(CONFIGURATION) == (
        DurabilityEntry(None, topic_filter="position/+"),
        DurabilityEntry(0.02, client="sensor-*"),
    )


def test_what_is_promised_is_said() -> None:
    assert shown(Configuration("file", "barn")) == {
        "durability": "commit",
        "durability_classes": "",
        "commit_delay": 5,
    }
    assert shown(CONFIGURATION) == {
        "durability": "batch(50)",
        "durability_classes": "topic position/+: memory; client sensor-*: batch(20); "
        "listener[1]: memory",
        "commit_delay": 7,
    }


def test_memory_for_everything_is_said() -> None:
    assert shown(Configuration("file", "barn"), durable=False)["durability"] == "memory"
