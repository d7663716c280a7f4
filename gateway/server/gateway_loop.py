"""The gateway's event loop: asyncio's, with a selector that serves MQTT sockets itself."""

import asyncio
from collections.abc import Callable
from contextvars import Context
from typing import TYPE_CHECKING, TypeVarTuple, cast

from gateway.server.socket_selector import SocketSelector

if TYPE_CHECKING:
    import selectors

Arguments = TypeVarTuple("Arguments")


class GatewayLoop(asyncio.SelectorEventLoop):
    """An asyncio loop whose selector returns as soon as anything is scheduled on it."""

    def __init__(self) -> None:
        self.sockets = SocketSelector()
        super().__init__(cast("selectors.BaseSelector", self.sockets))

    def call_soon(
        self,
        callback: Callable[[*Arguments], object],
        *args: *Arguments,
        context: Context | None = None,
    ) -> asyncio.Handle:
        """Schedule as asyncio does."""
        self.sockets.scheduled = True
        return super().call_soon(callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[[*Arguments], object],
        *args: *Arguments,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Schedule as asyncio does."""
        self.sockets.scheduled = True
        return super().call_at(when, callback, *args, context=context)
