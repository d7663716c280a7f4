"""A gateway in this process whose file a test changes."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gateway.app.reload.reload import read_again
from gateway.config.load import load
from tests.support.gateway_here import Gateway
from tests.support.operator import Operator
from tests.support.ports import free_port
from tests.support.raw_client import Clients


class Changing:
    """A running gateway, an operator who reloads it, and the file."""

    def __init__(self, folder: Path, stack: AsyncExitStack) -> None:
        self.file = folder / "gateway.toml"
        self.folder = folder
        self.port = free_port()
        self.listener = f"[[listener]]\nport = {self.port}\n"
        self.clients = Clients(self.port)
        self.gateway: Gateway
        self.operator: Operator
        self._stack = stack
        self._opened = [self.clients]

    def write(self, text: str) -> None:
        """Have the file say this, beside the listener of the test's clients."""
        self.file.write_text(self.listener + text)

    async def start(self, text: str) -> None:
        """Start the gateway with this file."""
        self.write(text)
        self.gateway = Gateway(load(self.file), self.folder / "data", self._stack)
        self.gateway.read_again = partial(read_again, self.file)
        await self.gateway.start()
        self.operator = await Operator.open(self.port)

    async def reload(self, text: str | None = None) -> dict[str, Any]:
        """Change the file and reload; return the answer, which must be as its schema has it."""
        if text is not None:
            self.write(text)
        return await self.operator.ask("reload")

    async def changed(self, text: str) -> list[str]:
        """Change the file and reload; return the keys that hold now, which must be all."""
        answer = await self.reload(text)
        assert (answer["refused"], answer["restart"]) == ([], []), answer
        return [each["key"] for each in answer["changed"]]

    def at(self, port: int) -> Clients:
        """Return clients of a listener at another port."""
        self._opened.append(Clients(port))
        return self._opened[-1]

    async def close(self) -> None:
        await self.operator.close()
        for each in self._opened:
            await each.close()


@pytest.fixture
async def changing(tmp_path: Path) -> AsyncIterator[Changing]:
    async with AsyncExitStack() as stack:
        made = Changing(tmp_path, stack)
        yield made
        await made.close()
