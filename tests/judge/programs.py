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
    def go(self, judge: Judge) -> None:
        judge.say_goodbye(self.name)


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
    """Messages that come `n` a read."""

    items: tuple[Item, ...]
    n: int

    def chunks(self, version: int) -> Iterator[list[tuple[Message, int]]]:
        for start in range(0, len(self.items), self.n):
            yield [
                (item.message(self.name, version), item.alias)
                for item in self.items[start : start + self.n]
            ]

    def go(self, judge: Judge) -> None:
        for chunk in self.chunks(judge.players[self.name].version):
            judge.publish(self.name, chunk)


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
    """Answer some of it."""

    most: int

    def go(self, judge: Judge) -> None:
        player = judge.players[self.name]
        if player.due:
            judge.answer(player, self.most)
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


Step = Connect | Connected | Together | Pass | Crash


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


SIZES = (0, 20, 30, 60, 1_000, 20_000, 200_000)


class Maker:
    """Makes a program from a seed."""

    def __init__(self, seed: int, *, crashes: bool, length: int = 30) -> None:
        self._random = random.Random(seed)
        self._number = 0
        self._crashes = crashes
        self._length = length
        self._names = "abcdef"[: self._random.randint(2, 6)]

    def make(self) -> Program:
        any_of = self._random
        profiles = tuple(self._profile(name) for name in self._names)
        steps: list[Step] = [Connect(name) for name in self._names]
        steps += [self._subscribe(name) for name in self._names if any_of.random() < 0.8]
        steps += [self._step() for _ in range(self._length)]
        settings = BrokerSettings(maximum_inflight=any_of.choice([1_000, 1_000, 3]))
        return Program(
            profiles,
            tuple(steps),
            settings,
            self._crashes or any_of.random() < 0.4,
            any_of.random() < 0.5,
        )

    def _profile(self, name: str) -> Profile:
        any_of = self._random
        expiry = any_of.choice([0, 60, 3_600, 3_600])
        one_by_one = any_of.random() < 0.3
        if any_of.random() < 0.4:
            return Profile(name, wire.MQTT_3_1_1, expiry, one_by_one=one_by_one)
        return Profile(
            name,
            wire.MQTT_5,
            expiry,
            any_of.choice([0, 0, 1, 3, 20]),
            any_of.choice([0, 0, 0, 1, 3]),
            any_of.choice([0, 0, 0, 0, 200, 5_000]),
            one_by_one,
        )

    def _step(self) -> Step:
        any_of = self._random
        name = any_of.choice(self._names)
        makers: list[tuple[int, Callable[[], Step]]] = [
            (40, lambda: self._publish(name)),
            (6, lambda: Together(tuple(self._publish(each) for each in self._names))),
            (10, lambda: self._subscribe(name)),
            (3, lambda: Unsubscribe(name, tuple(self._filter() for _ in range(2)))),
            (6, lambda: Connect(name, any_of.random() < 0.2, self._will(name))),
            (5, lambda: Drop(name)),
            (2, lambda: Goodbye(name)),
            (6, lambda: Slow(name)),
            (4, lambda: Answer(name, any_of.choice([1, 2, 10]))),
            (4, lambda: Quick(name)),
            (3, lambda: Stall(name)),
            (4, lambda: Read(name)),
            (2, lambda: Withhold(name)),
            (2, lambda: Release(name)),
            (3, lambda: Pass(any_of.choice([7, 7, 33, 130]))),
        ]
        if self._crashes:
            makers.append((6, Crash))
        weights = [weight for weight, _ in makers]
        return any_of.choices([make for _, make in makers], weights)[0]()

    def _will(self, name: str) -> Item | None:
        if self._crashes or self._random.random() < 0.6:
            return None
        return Item(self._next(), f"{name}/will", self._random.randint(0, 2), size=40, value=3)

    def _filter(self) -> str:
        any_of = self._random
        name = any_of.choice(self._names)
        plain = any_of.choice(
            [
                "#",
                "#",
                "+/0",
                "+/+",
                f"{name}/#",
                f"{name}/0",
                f"{name}/1",
                "all/+",
                "all/x",
                "all/#",
            ]
        )
        if any_of.random() < 0.2:
            return f"$share/{any_of.choice('gh')}/{plain}"
        return plain

    def _subscribe(self, name: str) -> Step:
        any_of = self._random
        requests = []
        for _ in range(any_of.choice([1, 1, 2, 3])):
            shared = (topic_filter := self._filter()).startswith("$share/")
            requests.append(
                Request(
                    topic_filter,
                    any_of.randint(0, 2),
                    not shared and any_of.random() < 0.15,
                    any_of.random() < 0.3,
                    any_of.choice([0, 0, 1, 2]),
                )
            )
        unique = tuple({each.topic_filter: each for each in requests}.values())
        identifier = any_of.choice([None, None, None, any_of.randint(1, 300)])
        where = any_of.choice([*WHERE]) if any_of.random() < 0.15 else None
        return Subscribe(name, unique, identifier, where)

    def _publish(self, name: str) -> Publish:
        any_of = self._random
        n = any_of.choice([1, 2, 100])
        count = any_of.choice([1, 2, 5, 30, 100]) if n > 1 else any_of.choice([1, 3, 10])
        qos = any_of.choice([0, 1, 2, -1])
        topics = any_of.choice([1, 1, 2, 3])
        common = any_of.random() < 0.1
        retain = any_of.choice([0, 0, 0, 0.1, 1])
        sizes = any_of.choice(
            [(30,), (30,), (60, 20), (0, 30), (0, 60, 1_000), (20_000, 30), (0, 200_000), SIZES]
        )
        properties = any_of.choice([(0,), (0,), (0,), (1,), (0, 1), range(len(PROPERTIES))])
        interval = any_of.choice([None, None, None, None, 5, 100])
        alias = any_of.choice([0, 0, 0, 1, 9])
        items = []
        large = 0
        for index in range(count):
            topic = f"{name}/{index % topics}" if topics != 3 else f"{name}/{any_of.randint(0, 2)}"
            if common:
                topic = "all/x"
            size = any_of.choice(sizes)
            large += size > 100_000
            if size > 100_000 and large > 4:
                size = 0
            if not size and (self._crashes or common):
                size = 20
            items.append(
                Item(
                    self._next(),
                    topic,
                    any_of.randint(0, 2) if qos < 0 else qos,
                    any_of.random() < retain,
                    size,
                    any_of.randint(0, 9),
                    any_of.choice(properties),
                    interval,
                    alias and alias + index % topics,
                )
            )
        return Publish(name, tuple(items), n)

    def _next(self) -> int:
        self._number += 1
        return self._number
