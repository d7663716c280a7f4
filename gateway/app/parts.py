"""The parts that others are made from, each complete once it is made: run, storage, core."""

import asyncio
import os
from collections.abc import Callable
from contextlib import AsyncExitStack
from enum import Enum, auto
from pathlib import Path
from typing import NamedTuple

from gateway.access.access import AccessPolicy
from gateway.broker.broker import Broker
from gateway.clock import Clock
from gateway.config.configuration import Configuration
from gateway.counters import Counters
from gateway.mqtt.message import Message
from gateway.mqtt.reason_codes import ReasonCode
from gateway.server.turn import Turn
from gateway.storage.engine.database import Database
from gateway.storage.engine.writer import Writer


class Alarms:
    """The alarms of a gateway; those raised before they can be published wait for that."""

    def __init__(self, earlier: dict[str, str], event: "Happenings") -> None:
        self._event = event
        self._earlier = earlier  # of the previous run: its texts are more precise
        self._waiting: dict[str, str] = {}
        self.states: dict[str, bool] = {}
        """Whether each alarm of this run is raised now."""
        self._publish: Callable[[str, str], None] | None = None

    def __call__(self, name: str, text: str) -> None:
        """Raise the alarm `name`; an empty text ends it."""
        if text or name in self.states:
            self.states[name] = bool(text)
        if text:
            self._event.begins("alarm", name, text)
        else:
            self._event.ends("alarm", name)
        if self._publish is None:
            self._waiting[name] = text
        else:
            self._publish(name, text)

    def publish(self, publish: Callable[[str, str], None]) -> None:
        """Publish alarms from now on, those that wait first."""
        self._publish = publish
        for name, text in (self._waiting | self._earlier).items():
            self(name, text)  # those of the run before are events of this one, too


class Stage(Enum):
    """Whether something happened once, or begins or ends."""

    ONCE = auto()
    BEGINS = auto()
    ENDS = auto()


class Happening(NamedTuple):
    """An event that a person may want to know of."""

    stage: Stage
    kind: str
    subject: str
    text: str
    severity: str


class Happenings:
    """Reports events to listeners; earlier ones wait for the first listener."""

    def __init__(self) -> None:
        self._waiting: list[Happening] | None = []
        self._listeners: list[Callable[[Happening], None]] = []

    def once(self, kind: str, subject: str, text: str, severity: str = "info") -> None:
        """Report an event; repetitions for the same subject are counted."""
        self._notify(Happening(Stage.ONCE, kind, subject, text, severity))

    def begins(self, kind: str, subject: str, text: str, severity: str = "warning") -> None:
        """Report that something begins, or its present text."""
        self._notify(Happening(Stage.BEGINS, kind, subject, text, severity))

    def ends(self, kind: str, subject: str, text: str = "") -> None:
        """Report that it has ended; nothing if it had not begun."""
        self._notify(Happening(Stage.ENDS, kind, subject, text, "info"))

    def listen(self, listener: Callable[[Happening], None]) -> None:
        """Call this with all events, beginning with those that wait."""
        self._listeners.append(listener)
        waiting, self._waiting = self._waiting or [], None
        for each in waiting:
            listener(each)

    def _notify(self, happening: Happening) -> None:
        if self._waiting is not None:
            self._waiting.append(happening)
        for listener in self._listeners:
            listener(happening)


class Run:
    """One run of a gateway: its configuration, its counters, and how it ends.

    `alarms` are passed on by an earlier run. Parts are put on the `stack`, which closes them in the
    opposite order.
    """

    def __init__(
        self,
        configuration: Configuration,
        data: Path,
        stack: AsyncExitStack,
        alarms: dict[str, str] | None = None,
        read_again: Callable[[], Configuration] | None = None,
    ) -> None:
        self.configuration = configuration
        """The present configuration; a reload replaces it."""
        self.read_again = read_again
        """Reads and checks the present configuration file; None without a file."""
        self.data = data
        self.stack = stack
        self.clock = Clock()
        self.counters = Counters()
        self.epoch = os.urandom(5).hex()
        self.event = Happenings()
        """Reports what a person may want to know."""
        self.alarm = Alarms(dict(alarms or {}), self.event)
        self.ended = asyncio.Event()
        self.fault = ""
        """Why the gateway ends without a request."""
        self.restarting = False
        """Whether it starts again after its end."""
        self.next_alarms: dict[str, str] = {}
        """The alarms of the start that follows at once."""
        self.troubles: list[Callable[[], str]] = []
        """Called for `/healthz`; each returns "" while all is well."""
        self.at_stop: list[Callable[[], None]] = []
        """Called after the last input, to add rows to the last batch."""

    def end(self, fault: str = "") -> None:
        """End the gateway, because of a `fault` or on request."""
        if not self.ended.is_set():
            self.fault = fault
        self.restarting = False
        self.ended.set()

    def start_anew(self) -> None:
        """End the gateway and start it again, unless it ends already."""
        if not self.ended.is_set():
            self.end()
            self.restarting = True

    def every(
        self, seconds: float, check: Callable[[], None], stack: AsyncExitStack | None = None
    ) -> None:
        """Call `check` at this interval, for the first time after one, until the `stack` ends.

        Without one that is the gateway's end.
        """

        async def run() -> None:
            while True:
                await asyncio.sleep(seconds)
                check()

        task = asyncio.get_running_loop().create_task(run())
        (stack or self.stack).callback(task.cancel)


class Storage(NamedTuple):
    """The database, its writer, and the number of starts."""

    database: Database
    writer: Writer
    starts: int


class Core(NamedTuple):
    """The broker, its turn, and the access policy of each listener."""

    broker: Broker
    turn: Turn
    policies: list[AccessPolicy]

    def publish(self, message: Message) -> ReasonCode:
        """Publish a message of the gateway's own in this turn."""
        return self.broker.publish(message, self.turn.instant)
