"""What the application gives to a bridge, in memory and under the test's control."""

import json
from collections.abc import Callable
from dataclasses import dataclass

from gateway.mqtt.reason_codes import ReasonCode
from gateway.routing.where.message import Message


class Broker:
    """Takes messages while `code` says so."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.code = ReasonCode.SUCCESS

    def publish(self, message: Message) -> ReasonCode:
        if self.code < 0x80:
            self.messages.append(message)
        return self.code

    @property
    def readings(self) -> list[tuple[str, dict[str, object]]]:
        """Topic and decoded payload of everything that was taken."""
        return [(message.topic, json.loads(message.payload)) for message in self.messages]


class Disk:
    """Keeps callbacks until the test commits, or runs them at once while `waits` is False."""

    def __init__(self) -> None:
        self.waits = False
        self._callbacks: list[Callable[[], None]] = []

    def when_on_disk(self, callback: Callable[[], None]) -> None:
        if self.waits:
            self._callbacks.append(callback)
        else:
            callback()

    def commit(self) -> None:
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()


class MemoryFrames:
    """The in-memory twin of gateway.storage.state.node_frames.NodeFrames, without a window."""

    def __init__(self) -> None:
        self.remembered: list[tuple[str, int, int]] = []

    def seen(self, node: str, boot: int, sequence: int) -> bool:
        return (node, boot, sequence) in self.remembered

    def remember(self, node: str, boot: int, sequence: int) -> None:
        self.remembered.append((node, boot, sequence))


@dataclass(frozen=True, slots=True)
class Settings:
    """One [[serial]] table."""

    port: str
    format: str = "frames"
    baud: int = 115_200
    node: str | None = None
