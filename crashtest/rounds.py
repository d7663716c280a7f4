"""The rounds of a crash test: publish, kill, start again, compare."""

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random

from crashtest.gateway_process import GatewayProcess
from crashtest.participant import Participant
from crashtest.participants import make_publishers, make_subscribers
from crashtest.publisher import Publisher
from crashtest.receiver import Receiver
from crashtest.records import Records
from crashtest.retained import check_retained, read_retained

SLOW = 0.02
"""Seconds by which the slow subscriber holds its acknowledgements back."""

ABSENCES = {"restless": 0.15, "blinking": 0.0}
"""For how many seconds those are away who come and go, at most."""

KILLED_IN_START = 0.2
NOT_SETTLED = 0.25
CUT_OFF = 0.5
"""How probable it is that a start is killed too, that a round begins before all is quiet, and that
a subscriber loses its connection at the moment of the kill."""

DEAF = 0.01
"""Seconds before a kill in which nobody reads what the gateway sends, at most."""

LONGEST_START = 0.6
"""Seconds after which a start is killed, at most."""

SILENCE = 10.0
"""Seconds without any message after which what has not come is taken to be lost."""


@dataclass(slots=True)
class Figures:
    """What the rounds counted.

    `windows` has a pair for each kill: how many messages nothing was promised for, and for how
    many seconds the oldest of them had waited.
    """

    rounds: int = 0
    kills: int = 0
    windows: list[tuple[int, float]] = field(default_factory=list)


class Rounds:
    """A gateway and its clients; `findings` has a sentence for everything that went wrong.

    What happens when is drawn from `seed`; the machine's own timing does the rest. A kill comes
    at most `seconds` after the publishing began. Without `sessions` only QoS 1 and the outbox
    take part.
    """

    def __init__(
        self, gateway: GatewayProcess, seed: int, seconds: float = 0.5, *, sessions: bool = True
    ) -> None:
        self.gateway = gateway
        self.findings: list[str] = []
        self.figures = Figures()
        self.seconds = seconds
        self.on_round: Callable[[int], None] = lambda number: None  # noqa: ARG005 - names it
        self.random = Random(seed)  # noqa: S311 - to be repeated, not to be kept secret
        self.publishers = make_publishers(self.findings, self.random, sessions=sessions)
        self.subscribers = make_subscribers(self.findings) if sessions else []
        self.records = Records(
            gateway.data, gateway.landing, gateway.folder / "scratch", self.findings
        )
        self._on_disk = Receiver("the outbox", self.records.received, exactly_once=True)
        self._receivers = [
            Receiver(each.name, each.received, exactly_once=each.qos == 2, roots=each.roots)
            for each in self.subscribers
        ]

    @property
    def participants(self) -> Sequence[Participant]:
        """Every client, the subscribers first."""
        return [*self.subscribers, *self.publishers]

    async def run(self, rounds: int) -> None:
        """Run so many rounds and compare once more; end early when something was found."""
        try:
            for _ in range(rounds):
                await self.run_one()
                if self.findings:
                    return
            await self.restart()
            await self.settle()
            self.gateway.stop()
            await self._ended()
            self.check()
        finally:
            self.gateway.kill()
            for participant in self.participants:
                await participant.aclose()

    async def run_one(self) -> None:
        """Start the gateway, compare, publish, kill it, and look what is on disk."""
        self.figures.rounds += 1
        self.on_round(self.figures.rounds)
        for publisher in self.publishers:
            publisher.round = self.figures.rounds
        await self.restart()
        if self.random.random() >= NOT_SETTLED:
            await self.settle()
        await self.disturb()
        self.check()

    async def restart(self) -> None:
        """Start the gateway, perhaps not at the first attempt, and let everyone join."""
        if self.random.random() < KILLED_IN_START:
            self.gateway.spawn()
            await asyncio.sleep(self.random.uniform(0, LONGEST_START))
            self._kill()
        await self.gateway.start()
        for publisher in self.publishers:
            if publisher.retain and publisher.sent:
                found = await read_retained(self.gateway.port)
                self.findings += check_retained(found, publisher.sent)
        for participant in self.participants:
            await participant.join(self.gateway.port)
        for subscriber in self.subscribers:
            await subscriber.subscribed()

    async def settle(self) -> None:
        """Wait until all is acknowledged and delivered, then compare."""
        for subscriber in self.subscribers:
            subscriber.pause = 0.0
        for publisher in self.publishers:
            await publisher.idle()
        await self._delivered()
        for _ in range(2):  # what the answers to the first bring has come at the second
            for participant in self.participants:
                await participant.barrier()
        self._compare(self._receivers)

    async def disturb(self) -> None:
        """Let everyone do as they like, and kill the gateway at some moment."""
        habits = [publisher.publish_freely() for publisher in self.publishers]
        for subscriber in self.subscribers:
            if subscriber.name == "away":
                subscriber.disconnect()
            elif subscriber.name == "slow":
                subscriber.pause = SLOW
            elif (absence := ABSENCES.get(subscriber.name)) is not None:
                habits.append(subscriber.come_and_go(self.gateway.port, self.random, absence))
        tasks = [asyncio.create_task(habit) for habit in habits]
        await self.strike()
        killed = time.monotonic()
        await asyncio.gather(*tasks)
        await self._ended()
        unanswered = [sent for each in self.publishers for sent in each.unanswered]
        oldest = min((sent.sent_at for sent in unanswered), default=killed)
        self.figures.windows.append((len(unanswered), max(0.0, killed - oldest)))

    async def strike(self) -> None:
        """Kill the gateway at some moment, and cut some connections with it.

        What a killed gateway has sent still arrives: whether it was promised too early, because
        its receiver was there, only shows when the connection dies at the same moment.
        """
        await asyncio.sleep(self.random.uniform(0, self.seconds))
        self._cut_off()
        self._kill()

    def check(self) -> None:
        """Compare what is on disk with what was acknowledged."""
        self.records.check()
        self._compare([self._on_disk])

    def _cut_off(self) -> None:
        """Read nothing for a moment, in which the gateway goes on, and lose what has come."""
        time.sleep(self.random.uniform(0, DEAF))
        for subscriber in self.subscribers:
            if self.random.random() < CUT_OFF:
                subscriber.lose()

    def _kill(self) -> None:
        self.gateway.check()
        self.gateway.kill()
        self.figures.kills += 1

    def _compare(self, receivers: Sequence[Receiver]) -> None:
        for receiver, publisher in self._pairs(receivers):
            self.findings += receiver.compare(publisher.name, publisher.qos, publisher.sent)

    def _pairs(self, receivers: Sequence[Receiver]) -> Iterator[tuple[Receiver, Publisher]]:
        for receiver in receivers:
            for publisher in self.publishers:
                if publisher.root in receiver.roots:
                    yield receiver, publisher

    async def _delivered(self) -> None:
        """Return when nobody lacks anything, or nothing has come for SILENCE seconds."""
        last, quiet_since = -1, time.monotonic()
        while any(
            receiver.missing(publisher.name, publisher.sent)
            for receiver, publisher in self._pairs(self._receivers)
        ):
            came = sum(each.messages for each in self.subscribers)
            if came != last:
                last, quiet_since = came, time.monotonic()
            elif time.monotonic() - quiet_since > SILENCE:
                return
            await asyncio.sleep(0.02)

    async def _ended(self) -> None:
        for participant in self.participants:
            await participant.ended()
