"""A gateway in this process, whose parts a test can reach by name."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from gateway.app.parts import Run
from gateway.app.start import Gateway as Started
from gateway.app.start import start
from gateway.config.configuration import Configuration
from gateway.config.load import load


class Gateway(Run):
    """A run whose other parts are there once it has been started."""

    def __init__(self, configuration: Configuration, data: Path, stack: AsyncExitStack) -> None:
        super().__init__(configuration, data, stack)
        self.parts: Started

    async def start(self, *, durable: bool = True) -> None:
        """Start it; its stack stops it."""
        self.parts = parts = await start(self, durable=durable)
        self.storage, self.core = parts.storage, parts.core
        self.database, self.writer = parts.storage.database, parts.storage.writer
        self.broker, self.turn = parts.core.broker, parts.core.turn
        self.listeners, self.operator_socket = parts.listeners, parts.operator_socket
        self.telemetry, self.bridges = parts.telemetry, parts.bridges
        self.starts = parts.storage.starts
        self.publish = parts.core.publish


@asynccontextmanager
async def started(folder: Path, text: str) -> AsyncIterator[Gateway]:
    """Give a running gateway with this configuration, whose file and data are in the folder."""
    file = folder / "gateway.toml"
    file.write_text(text, "utf-8")
    async with AsyncExitStack() as stack:
        made = Gateway(load(file), folder / "data", stack)
        await made.start()
        yield made
