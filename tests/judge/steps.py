"""The steps of a program: what clients do, and what happens to the broker."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tests.conformance.support import wire
from tests.judge import troubles
from tests.judge.items import Item
from tests.judge.judge import Judge, Request
from tests.judge.messages import Message
from tests.judge.naive_broker import Will
from tests.judge.rights import Login


@dataclass(frozen=True, slots=True)
class Connect:
    name: str
    clean: bool = False
    will: Item | None = None
    will_delay: int = 0
    login: Login | None = None

    def run(self, judge: Judge) -> None:
        player = judge.players[self.name]
        will = None
        if self.will is not None:
            message = self.will.message(self.name, wire.MQTT_3_1_1)
            will = Will(message, self.will_delay if player.version == wire.MQTT_5 else 0)
        judge.connect(self.name, self.clean or not player.profile.expiry, will, self.login)


@dataclass(frozen=True, slots=True)
class Connected:
    """A step that needs a connection; most need one that the client reads."""

    name: str

    def run(self, judge: Judge) -> None:
        player = judge.players[self.name]
        loud = isinstance(self, Subscribe | Unsubscribe) or getattr(self, "what", "") in LOUD
        if player.link is not None and (player.reads or loud):
            self.go(judge)

    def go(self, judge: Judge) -> None:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Goodbye(Connected):
    leaves_will: bool = False

    def go(self, judge: Judge) -> None:
        judge.say_goodbye(self.name, leaves_will=self.leaves_will)


@dataclass(frozen=True, slots=True)
class Subscribe(Connected):
    requests: tuple[Request, ...]
    identifier: int | None = None
    where: str | None = None

    def go(self, judge: Judge) -> None:
        if judge.players[self.name].version == wire.MQTT_5:
            judge.subscribe(self.name, self.requests, self.identifier, self.where)
        else:
            judge.subscribe(
                self.name, [Request(one.topic_filter, one.qos) for one in self.requests]
            )


@dataclass(frozen=True, slots=True)
class Unsubscribe(Connected):
    topic_filters: tuple[str, ...]

    def go(self, judge: Judge) -> None:
        judge.unsubscribe(self.name, self.topic_filters)


@dataclass(frozen=True, slots=True)
class Publish(Connected):
    """Messages that come `n` a read; with `cut` such a read comes in two."""

    items: tuple[Item, ...]
    n: int
    cut: int = 0

    def chunks(self, version: int) -> Iterator[list[tuple[Message, int]]]:
        for start in range(0, len(self.items), self.n):
            yield [
                (item.message(self.name, version), item.alias)
                for item in self.items[start : start + self.n]
            ]

    def go(self, judge: Judge) -> None:
        for chunk in self.chunks(judge.players[self.name].version):
            judge.publishing.publish(self.name, chunk, self.cut)


def first_reads(
    judge: Judge, publishes: Iterable[Publish]
) -> list[tuple[str, list[tuple[Message, int]]]]:
    """Return the first read of each client, the last where one has several."""
    chunks = {}
    for one in publishes:
        player = judge.players[one.name]
        if player.reads:
            chunks[one.name] = next(one.chunks(player.version))
    return [*chunks.items()]


@dataclass(frozen=True, slots=True)
class PublishInVain(Connected):
    """Messages after which the connection is lost, with all answers."""

    publish: Publish

    def go(self, judge: Judge) -> None:
        chunk = next(self.publish.chunks(judge.players[self.name].version))
        judge.publishing.lose_answers(self.name, chunk)


@dataclass(frozen=True, slots=True)
class Together:
    """What several clients publish in one turn, a read of each."""

    publishes: tuple[Publish, ...]

    def run(self, judge: Judge) -> None:
        accepted = {}
        for one in self.publishes:
            player = judge.players[one.name]
            if player.reads and one.name not in accepted:
                chunk = next(one.chunks(player.version))
                accepted[one.name] = judge.publishing.hand_over(one.name, chunk)
        judge.driver.settle()
        for name, messages in accepted.items():
            judge.publishing.taken(name, messages)
        judge.exchange()


@dataclass(frozen=True, slots=True)
class Answer(Connected):
    """Answer some of it, with a code."""

    most: int
    code: int = 0

    def go(self, judge: Judge) -> None:
        player = judge.players[self.name]
        if player.due:
            judge.answer(player, self.most, self.code)
            judge.exchange()


@dataclass(frozen=True, slots=True)
class Do(Connected):
    """What has no other words: `drop`, or a change of how a client reads and answers."""

    what: str

    def go(self, judge: Judge) -> None:
        player = judge.players[self.name]
        match self.what:
            case "drop":
                judge.drop(self.name)
            case "slow":  # answer nothing that is published from now on
                player.answers = False
            case "quick":  # answer everything, at once from now on
                player.answers = True
            case "stall":  # read nothing from now on
                player.read(reads=False)
            case "read":
                player.read(reads=True)
                judge.driver.settle()
            case "withhold":  # answer no PUBREC from now on
                player.releases = False
            case "release":
                player.release()
        if self.what in ("quick", "read", "release"):
            judge.exchange()
            player.stale = player.stale and self.what != "read"


@dataclass(frozen=True, slots=True)
class Pass:
    seconds: float

    def run(self, judge: Judge) -> None:
        judge.pass_time(self.seconds)


@dataclass(frozen=True, slots=True)
class Crash:
    def run(self, judge: Judge) -> None:
        if judge.driver.disk is not None:
            troubles.crash(judge)


@dataclass(frozen=True, slots=True)
class PowerCut:
    """A crash before anything of what is published at last is on disk."""

    publishes: tuple[Publish, ...]

    def run(self, judge: Judge) -> None:
        if judge.driver.disk is not None:
            troubles.power_cut(judge, first_reads(judge, self.publishes))


@dataclass(frozen=True, slots=True)
class Reload:
    """Other access rules for some listeners; None for no rules."""

    rules: tuple[tuple[str, str | None], ...]

    def run(self, judge: Judge) -> None:
        troubles.reload(judge, dict(self.rules))


@dataclass(frozen=True, slots=True)
class FillUplink:
    """Let the uplink's outbox be full, or have room again."""

    full: bool

    def run(self, judge: Judge) -> None:
        troubles.fill_uplink(judge, full=self.full)


@dataclass(frozen=True, slots=True)
class RefuseCommits:
    """What is published while the disk takes nothing, until it does again."""

    publishes: tuple[Publish, ...]

    def run(self, judge: Judge) -> None:
        if judge.driver.disk is not None:
            troubles.refuse_commits(judge, first_reads(judge, self.publishes))


LOUD = ("drop", "read")
"""What a client may do that reads nothing."""

Step = (
    Connect | Connected | Together | Pass | Crash | PowerCut | Reload | FillUplink | RefuseCommits
)
