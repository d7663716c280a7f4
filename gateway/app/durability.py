"""The durability classes that the configuration names, for `$SYS`."""

from gateway.config.configuration import Configuration
from gateway.counters import Counters


def show_durability(configuration: Configuration, counters: Counters, *, durable: bool) -> None:
    """Show the durability classes under `$SYS`."""
    storage = configuration.storage
    counters.set("tidegate/storage/durability", storage.durability if durable else "memory")
    counters.set("tidegate/storage/durability_classes", _described(configuration))
    counters.set("tidegate/storage/commit_delay", storage.commit_delay)


def _described(configuration: Configuration) -> str:
    """Return each class that is not the default with whom it is for, such as "a/#: memory"."""
    entries = [
        f"client {each.client}: {each.durability}"
        if each.topic is None
        else f"topic {each.topic}: {each.durability}"
        for each in configuration.durability
    ]
    listeners = [
        f"listener[{index}]: {each.durability}"
        for index, each in enumerate(configuration.listeners)
        if each.durability is not None
    ]
    return "; ".join(entries + listeners)
