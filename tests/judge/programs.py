"""Random programs: what clients do, one step after the other, made from a seed."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields

from gateway.broker.settings import BrokerSettings
from tests.conformance import wire
from tests.conformance.answers import Properties
from tests.judge.agreement import agree, finish
from tests.judge.judge import Judge, Request
from tests.judge.messages import Message, Subscription
from tests.judge.player import Profile

WHERE: dict[str, Callable[[Message], bool]] = {
    "payload.v > 4": lambda m: m.value is not None and m.value > 4,
    "payload.v = 3": lambda m: m.value == 3,
    "payload.v = 3 AND qos = 1": lambda m: m.value == 3 and m.qos == 1,
    "payload.v = 3 OR retain": lambda m: m.value == 3 or m.retain,
    "$payload_size < 50": lambda m: len(m.payload) < 50,
    "$user.site = 'A'": lambda m: (wire.USER_PROPERTY, (b"site", b"A")) in m.properties,
    "clientid = 'a'": lambda m: m.publisher == "a",
    "payload.v IS NULL": lambda m: m.value is None,
}
"""Filters, and what each says, judged by hand."""

PROPERTIES: list[Properties] = [
    [],
    [(wire.CONTENT_TYPE, b"application/json")],
    [(wire.USER_PROPERTY, (b"site", b"A"))],
    [(wire.PAYLOAD_FORMAT_INDICATOR, 1), (wire.USER_PROPERTY, (b"site", b"B"))],
    [
        (wire.RESPONSE_TOPIC, b"all/answers"),
        (wire.CORRELATION_DATA, b"\x00\xff"),
        (wire.USER_PROPERTY, (b"z", b"1")),
        (wire.USER_PROPERTY, (b"site", b"A")),
        (wire.USER_PROPERTY, (b"z", b"1")),
    ],
]


@dataclass(frozen=True, slots=True, repr=False)
class Item:
    """A message to publish, in short."""

    number: int
    topic: str
    qos: int = 0
    retain: bool = False
    size: int = 0
    value: int = 0
    properties: int = 0
    interval: int | None = None
    alias: int = 0

    def __repr__(self) -> str:
        said = [(each.name, getattr(self, each.name), each.default) for each in fields(self)]
        words = [f"{name}={value!r}" for name, value, default in said if value != default]
        return f"Item({', '.join(words)})"

    def message(self, publisher: str, version: int) -> Message:
        newest = version == wire.MQTT_5
        payload = b""
        if self.size:
            payload = f'{{"v":{self.value},"n":{self.number}'.encode()
            rest = self.size - len(payload) - len(b',"x":""}')
            payload += (b',"x":"' + b"x" * rest + b'"}') if rest > 0 else b"}"
        return Message(
            self.number,
            publisher,
            self.topic,
            payload,
            self.qos,
            self.retain,
            PROPERTIES[self.properties] if newest else [],
            self.interval if newest else None,
            self.value if payload else None,
        )


@dataclass(frozen=True, slots=True)
class Connect:
    name: str
    clean: bool = False
    will: Item | None = None

    def run(self, judge: Judge) -> None:
        player = judge.players[self.name]
        will = None
        if self.will is not None:
            will = self.will.message(self.name, wire.MQTT_3_1_1)
        judge.connect(self.name, self.clean or not player.profile.expiry, will)


@dataclass(frozen=True, slots=True)
class Connected:
    """A step that needs a connection which the client reads."""

    name: str

    def run(self, judge: Judge) -> None:
        player = judge.players[self.name]
        if player.link is not None and (player.reads or isinstance(self, Drop | Read)):
            self.go(judge)

    def go(self, judge: Judge) -> None:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Drop(Connected):
    def go(self, judge: Judge) -> None:
        judge.drop(self.name)


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
        if judge.players[self.name].version < wire.MQTT_5:
            requests = [Request(each.topic_filter, each.qos) for each in self.requests]
            judge.subscribe(self.name, requests, None, None, Subscription("", 0))
        elif self.where is None:
            judge.subscribe(self.name, self.requests, self.identifier, None, Subscription("", 0))
        else:
            passes = Subscription("", 0, where=WHERE[self.where])
            judge.subscribe(self.name, self.requests, self.identifier, self.where, passes)


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
            judge.publish(self.name, chunk, self.cut)


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
                accepted[one.name] = judge.hand_over(one.name, chunk)
        judge.driver.settle()
        for name, messages in accepted.items():
            judge.taken(name, messages)
        judge.exchange()


@dataclass(frozen=True, slots=True)
class Slow(Connected):
    """Answer nothing that is published from now on."""

    def go(self, judge: Judge) -> None:
        judge.players[self.name].answers = False


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
class Quick(Connected):
    """Answer everything, at once from now on."""

    def go(self, judge: Judge) -> None:
        judge.players[self.name].answers = True
        judge.exchange()


@dataclass(frozen=True, slots=True)
class Stall(Connected):
    """Read nothing from now on."""

    def go(self, judge: Judge) -> None:
        player = judge.players[self.name]
        assert player.link is not None
        player.link.read(reads=False)
        player.stale = True


@dataclass(frozen=True, slots=True)
class Read(Connected):
    """Read again."""

    def go(self, judge: Judge) -> None:
        player = judge.players[self.name]
        assert player.link is not None
        player.link.read(reads=True)
        judge.driver.settle()
        judge.exchange()
        player.stale = False


@dataclass(frozen=True, slots=True)
class Withhold(Connected):
    """Answer no PUBREC from now on."""

    def go(self, judge: Judge) -> None:
        judge.players[self.name].releases = False


@dataclass(frozen=True, slots=True)
class Release(Connected):
    def go(self, judge: Judge) -> None:
        judge.players[self.name].release()
        judge.exchange()


@dataclass(frozen=True, slots=True)
class Pass:
    seconds: float

    def run(self, judge: Judge) -> None:
        judge.pass_time(self.seconds)


@dataclass(frozen=True, slots=True)
class Crash:
    def run(self, judge: Judge) -> None:
        if judge.driver.disk is not None:
            judge.crash()


@dataclass(frozen=True, slots=True)
class PowerCut:
    """A crash before anything of what is published at last is on disk."""

    publishes: tuple[Publish, ...]

    def run(self, judge: Judge) -> None:
        chunks = {}
        for one in self.publishes:
            player = judge.players[one.name]
            if player.reads:
                chunks[one.name] = next(one.chunks(player.version))
        if judge.driver.disk is not None:
            judge.power_cut([*chunks.items()])


Step = Connect | Connected | Together | Pass | Crash | PowerCut


@dataclass(frozen=True)
class Program:
    """Steps, and for whom."""

    profiles: tuple[Profile, ...]
    steps: tuple[Step, ...]
    settings: BrokerSettings
    durable: bool
    at_once: bool

    def run(self) -> Judge:
        """Run it to the end; raise DisagreementError where the brokers disagree."""
        judge = Judge(self.profiles, self.settings, durable=self.durable, at_once=self.at_once)
        for number, step in enumerate(self.steps):
            try:
                step.run(judge)
                agree(judge)
            except Exception as error:
                error.add_note(f"in step {number}: {str(step)[:300]}")
                raise
        finish(judge)
        return judge


SIZES = [
    (30,),
    (30,),
    (60, 20),
    (0, 30),
    (0, 60, 1_000),
    (20_000, 30),
    (0, 200_000),
    (0, 20, 30, 60, 1_000, 20_000, 200_000),
]
"""Bytes of the payloads of one batch, of which each has any."""

LIKINGS = (
    "aliases",
    "expiry",
    "identifiers",
    "limits",
    "no local",
    "properties",
    "retain",
    "shared",
    "where",
)
"""What a program has or does without."""


class Maker:
    """Makes a program from a seed.

    Each program leaves some of what clients may do out, so that what is left meets itself.
    """

    def __init__(self, seed: int, *, crashes: bool, length: int = 30) -> None:
        self._random = any_of = random.Random(seed)
        self._number = 0
        self._crashes = crashes
        self._length = length
        self._names = "abcdef"[: any_of.randint(2, 6)]
        self._bounded = any_of.random() < 0.25
        self._everything = any_of.random() < 0.5  # is subscribed to by somebody
        self._likes = {each: any_of.random() < 0.5 for each in LIKINGS}

    def make(self) -> Program:
        any_of = self._random
        profiles = tuple(self._profile(name) for name in self._names)
        steps: list[Step] = [Connect(name) for name in self._names]
        steps += [self._subscribe(name) for name in self._names if any_of.random() < 0.8]
        steps += [self._step() for _ in range(self._length)]
        settings = BrokerSettings(
            maximum_inflight=any_of.choice([1_000, 1_000, 3]),
            maximum_queued_messages=any_of.choice([3, 20, 90]) if self._bounded else 1_000_000,
        )
        durable = self._crashes or any_of.random() < 0.4
        return Program(profiles, tuple(steps), settings, durable, any_of.random() < 0.5)

    def _profile(self, name: str) -> Profile:
        any_of = self._random
        expiry = any_of.choice([0, 60, 3_600, 3_600])
        one_by_one = any_of.random() < 0.3
        if any_of.random() < 0.4 and not self._bounded:
            version = any_of.choice([wire.MQTT_3_1, *[wire.MQTT_3_1_1] * 4])
            return Profile(name, version, expiry, one_by_one=one_by_one)
        limited, aliases = self._likes["limits"], self._likes["aliases"]
        return Profile(
            name,
            wire.MQTT_5,
            expiry,
            any_of.choice([0, 0, 1, 3, 20]),
            any_of.choice([0, 0, 1, 3]) if aliases else 0,
            any_of.choice([0, 0, 200, 5_000]) if limited else 0,
            one_by_one,
        )

    def _step(self) -> Step:
        any_of = self._random
        name = any_of.choice(self._names)
        makers: list[tuple[int, Callable[[], Step]]] = [
            (40, lambda: self._publish(name)),
            (6, lambda: Together(tuple(self._publish(each) for each in self._names))),
            (10, lambda: self._subscribe(name)),
            (3, lambda: Unsubscribe(name, tuple({self._filter() for _ in range(2)}))),
            (6, lambda: Connect(name, any_of.random() < 0.2, self._will(name))),
            (5, lambda: Drop(name)),
            (2, lambda: Goodbye(name, any_of.random() < 0.3)),
            (6, lambda: Slow(name)),
            (4, lambda: Answer(name, any_of.choice([1, 2, 10]), any_of.choice([0, 0, 0x10, 0x83]))),
            (4, lambda: Quick(name)),
            (3, lambda: Stall(name)),
            (4, lambda: Read(name)),
            (2, lambda: Withhold(name)),
            (2, lambda: Release(name)),
            (3, lambda: Pass(any_of.choice([7, 7, 33, 130]))),
        ]
        if self._crashes:
            makers += [(4, Crash), (3, self._power_cut)]
        weights = [weight for weight, _ in makers]
        return any_of.choices([make for _, make in makers], weights)[0]()

    def _power_cut(self) -> Step:
        retains, self._likes["retain"] = self._likes["retain"], False
        publishes = tuple(self._publish(name) for name in self._names)
        self._likes["retain"] = retains
        return PowerCut(publishes)

    def _will(self, name: str) -> Item | None:
        if self._crashes or self._bounded or self._random.random() < 0.6:
            return None
        return Item(self._next(), f"{name}/will", self._random.randint(0, 2), size=40, value=3)

    def _filter(self) -> str:
        any_of = self._random
        name = any_of.choice(self._names)
        filters = ["+/0", "+/+", f"{name}/#", f"{name}/0", f"{name}/1", "all/+", "all/x", "all/#"]
        plain = any_of.choice([*filters, "#", "#"] if self._everything else filters[3:])
        if self._likes["shared"] and any_of.random() < 0.3:
            return f"$share/{any_of.choice('gh')}/{plain}"
        return plain

    def _subscribe(self, name: str) -> Step:
        any_of = self._random
        requests = []
        for _ in range(any_of.choice([1, 1, 2, 3])):
            shared = (topic_filter := self._filter()).startswith("$share/")
            no_local = self._likes["no local"] and not shared and any_of.random() < 0.3
            requests.append(
                Request(
                    topic_filter,
                    any_of.randint(0, 2),
                    no_local,
                    any_of.random() < 0.3,
                    any_of.choice([0, 0, 1, 2]),
                )
            )
        unique = tuple({each.topic_filter: each for each in requests}.values())
        identifier = where = None
        if self._likes["identifiers"]:
            identifier = any_of.choice([None, any_of.randint(1, 300)])
        if self._likes["where"] and any_of.random() < 0.4:
            where = any_of.choice([*WHERE])
        return Subscribe(name, unique, identifier, where)

    def _publish(self, name: str) -> Publish:
        any_of = self._random
        n = any_of.choice([1, 2, 100])
        count = any_of.choice([1, 2, 5, 30, 100]) if n > 1 else any_of.choice([1, 3, 10])
        qos = any_of.choice([0, 1, 1, 2, -1])
        topics = any_of.choice([1, 1, 2, 3, 60])
        in_turn = any_of.random() < 0.5
        common = any_of.random() < 0.1
        retain = any_of.choice([0, 0, 0.1, 1]) if self._likes["retain"] else 0
        sizes = any_of.choice(SIZES)
        interval = any_of.choice([None, 5, 100]) if self._likes["expiry"] else None
        alias = any_of.choice([0, 1, 9]) if self._likes["aliases"] else 0
        properties = [0]
        if self._likes["properties"]:
            properties = any_of.choice([[0], [1], [0, 1], [*range(len(PROPERTIES))]])
        items = []
        large = 0
        for index in range(count):
            place = index % topics if in_turn else any_of.randrange(topics)
            size = any_of.choice(sizes)
            large += size > 100_000
            if size > 100_000 and large > 4:
                size = 0
            if not size and (self._crashes or common or self._likes["shared"]):
                size = 20  # what is empty says nothing of itself where it could be another's
            items.append(
                Item(
                    self._next(),
                    "all/x" if common else f"{name}/{place}",
                    any_of.randint(0, 2) if qos < 0 else qos,
                    any_of.random() < retain,
                    size,
                    any_of.randint(0, 9),
                    any_of.choice(properties),
                    interval,
                    alias and alias + place % 4,
                )
            )
        return Publish(name, tuple(items), n, any_of.choice([0, 0, 0, 1, 3, 17, 1_000_000]))

    def _next(self) -> int:
        self._number += 1
        return self._number
