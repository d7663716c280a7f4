"""The memory limit for clients: `[memory]`."""

from gateway.settings.declaration import key, settings_class
from gateway.settings.quantities import size_from


@settings_class
class MemorySettings:
    """What all clients together may make the gateway hold."""

    limit: int | None = key(
        size_from(16 * 1024 * 1024),
        "bytes of [memory](#memory) for all clients",
        None,
        shown="a quarter of the memory, 64 to 512 MiB",
    )
