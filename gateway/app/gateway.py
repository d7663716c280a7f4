"""One gateway as its parts know it: what runs, and how it ends."""

import asyncio
import os
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from gateway.clock import Clock
from gateway.config.configuration import Configuration
from gateway.counters import Counters
from gateway.mqtt.message import Message
from gateway.mqtt.reason_codes import ReasonCode

if TYPE_CHECKING:
    from gateway.access.policy import AccessPolicy
    from gateway.app.bridges import Bridges
    from gateway.app.clock_stamp import ClockStamp
    from gateway.app.control import Control
    from gateway.app.disk.data_folder import DataFolder
    from gateway.app.telemetry import Telemetry
    from gateway.broker.broker import Broker
    from gateway.server.listening.listener import Listener
    from gateway.server.passwords.logins import PasswordThread
    from gateway.server.turn import Turn
    from gateway.storage.engine.database import Database
    from gateway.storage.engine.writer import Writer


class Gateway:
    """The parts of one gateway; what was made of them, the stack takes apart again."""

    def __init__(self, configuration: Configuration, data: Path, stack: AsyncExitStack) -> None:
        self.configuration = configuration
        self.data = data
        self.stack = stack
        self.clock = Clock()
        self.counters = Counters()
        self.epoch = os.urandom(5).hex()
        self.listeners: list[Listener] = []
        self.operator_socket: Listener | None = None
        self.folder: DataFolder
        self.database: Database
        self.writer: Writer
        self.starts: int
        self.clock_stamp: ClockStamp
        self.broker: Broker
        self.policies: list[AccessPolicy]
        self.turn: Turn
        self.telemetry: Telemetry
        self.control: Control
        self.bridges: Bridges
        self._password_thread: PasswordThread | None = None
        self.ended = asyncio.Event()
        self.files_changed = asyncio.Event()  # of listeners, as somebody says who changed them
        self.fault = ""
        """Why the gateway ends by itself."""
        self.anew = False
        """Whether it starts once more after its end."""
        self.alarms: dict[str, str] = {}
        """What the start has to tell from the beginning, by name."""
        self.next_alarms: dict[str, str] = {}
        """What the start that follows at once has to tell."""
        self.troubles: list[Callable[[], str]] = []
        """Asked for what `/healthz` is to tell; each returns "" while all is well."""
        self.at_stop: list[Callable[[], None]] = []
        """Called when nothing comes in any more, to gather rows for the last batch."""

    @property
    def status(self) -> str:
        """One line that says what runs and where."""
        places = ", ".join(each.description for each in self.listeners)
        return f"gateway {self.configuration.gateway_id} listens on {places}"

    def password_thread(self) -> "PasswordThread":
        """Return the thread in which passwords are checked, which begins with the first."""
        if self._password_thread is None:
            from gateway.server.passwords.logins import PasswordThread

            failed = self.broker.failed_logins
            self._password_thread = PasswordThread(self.turn.loop, self.turn.now, failed)
            self.stack.callback(self._password_thread.close)
        return self._password_thread

    def end(self, fault: str = "") -> None:
        """Let the gateway end, because of a `fault` or because it was asked to."""
        if not self.ended.is_set():
            self.fault = fault
        self.anew = False
        self.ended.set()

    def start_anew(self) -> None:
        """Let the gateway end and start once more, unless it ends already."""
        if not self.ended.is_set():
            self.end()
            self.anew = True

    def publish(self, message: Message) -> ReasonCode:
        """Publish a message of the gateway's own in this turn."""
        return self.broker.publish(message, self.turn.instant)
