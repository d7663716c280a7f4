from gateway.app.durability import show_durability
from gateway.config.configuration import Configuration
from gateway.counters import Counters
from gateway.settings.listener import ListenerSettings
from gateway.settings.storage import DurabilityRule, StorageSettings

CONFIGURATION = Configuration(
    "file",
    "barn",
    listeners=(ListenerSettings(), ListenerSettings(durability="memory")),
    storage=StorageSettings(durability="batch(50)", commit_delay=7),
    durability=(
        DurabilityRule("memory", topic="position/+"),
        DurabilityRule("batch(20)", client="sensor-*"),
    ),
)


def shown(configuration: Configuration, *, durable: bool = True) -> dict[str, object]:
    counters = Counters()
    show_durability(configuration, counters, durable=durable)
    return {
        name.removeprefix("tidegate/storage/"): value for name, value in counters.values.items()
    }


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
