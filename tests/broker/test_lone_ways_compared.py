"""What goes the lone way at QoS 1, and its PUBACK, is what would have gone the ordinary way."""

from dataclasses import dataclass, field
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gateway.broker.settings import BrokerSettings
from gateway.mqtt.encode import encode
from gateway.mqtt.packets import (
    MQTT_3_1_1,
    MQTT_5,
    Packet,
    PingReq,
    PubAck,
    Publish,
    Subscribe,
    SubscriptionRequest,
    Unsubscribe,
)
from tests.support.broker_harness import Harness
from tests.support.memory_client import MemoryClient

TOPICS = ("a/b", "a/c")


class Immediate:
    """Lets a client read what is written to it before the turn ends."""

    def __init__(self, client: MemoryClient) -> None:
        self._client = client
        self.count = 0

    def write(self, data: bytes | bytearray, /) -> None:
        self.count += len(data)
        self._client._read(bytes(data))


@dataclass
class World:
    """A subscriber and two publishers, whose messages have `ways` and come `alone`, or not."""

    ways: bool
    alone: bool
    versions: tuple[int, int]
    persistent: bool
    receive_maximum: int
    qos: int = 1
    clients: dict[str, MemoryClient] = field(default_factory=dict)
    wires: list[Immediate] = field(default_factory=list)
    seen: list[tuple[str, Packet]] = field(default_factory=list)
    outstanding: list[int] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.harness = Harness(BrokerSettings(receive_maximum=3))
        self.harness.ways, self.harness.alone = self.ways, self.alone
        for name in ("subscriber", "one", "two"):
            self.connect(name)
        self.subscribe("subscriber", self.qos)

    def connect(self, name: str) -> None:
        old = self.clients.get(name)
        if old is not None:
            self.outstanding = [] if name == "subscriber" else self.outstanding
            if not old.closed():
                old.drop()
        version = self.versions[name != "subscriber"]
        if name == "subscriber" and self.persistent:
            client = self.harness.persistent(name, version, receive_maximum=self.limit(version))
        else:
            client = self.harness.connect(name, version, receive_maximum=self.limit(version))
        self.clients[name] = client
        if self.alone:
            wire = Immediate(client)
            self.wires.append(wire)
            client.client.connection.output.transport = wire
        self.read()

    def limit(self, version: int) -> int | None:
        return self.receive_maximum if version == MQTT_5 else None

    def subscribe(self, name: str, qos: int) -> None:
        request = SubscriptionRequest(TOPICS[0], qos)
        self.clients[name].send(Subscribe(4, [request]))
        self.read()

    def unsubscribe(self, name: str) -> None:
        self.clients[name].send(Unsubscribe(5, [TOPICS[0]]))
        self.read()

    def publish(self, name: str, topic: int, qos: int, size: int, pieces: int) -> None:
        number = self.numbers[name] = self.numbers.get(name, 0) % 5 + 1
        client = self.clients[name]
        packet = Publish(TOPICS[topic], b"x" * size, qos, packet_id=number * (qos > 0))
        data = encode(packet, client.version)
        self.harness.pass_time(1.5)
        if pieces == 2:
            client.send_bytes(data[:-2])
            client.send_bytes(data[-2:])
        else:
            client.send_bytes(data * (pieces or 2))
        self.read()

    def acknowledge(self, first: int, count: int) -> None:
        found = self.outstanding[first : first + count]
        del self.outstanding[first : first + count]
        if found:
            self.clients["subscriber"].send(*(PubAck(number) for number in found))
        self.read()

    def ping(self, name: str) -> None:
        self.clients[name].send(PingReq())
        self.read()

    def slow(self, name: str, takes: bool) -> None:
        client = self.clients[name]
        client.reads = takes
        if self.alone:
            wire = next(wire for wire in self.wires if wire._client is client)
            client.client.connection.output.transport = wire if takes else None
        self.harness.settle()
        self.read()

    def read(self) -> None:
        for name, client in self.clients.items():
            for packet in client.take():
                self.seen.append((name, packet))
                if name == "subscriber" and isinstance(packet, Publish) and packet.qos:
                    self.outstanding.append(packet.packet_id)

    def figures(self) -> dict[str, Any]:
        """Return everything that can be seen of it."""
        broker, session = self.harness.broker, self.harness.broker.sessions.get("subscriber")
        traffic = broker.traffic
        inflight = [] if session is None else session.inflight.items()
        return {
            "inflight": [
                (number, *_fields(message.delivery.message)) for number, message in inflight
            ],
            "room": None if session is None else session.inflight.room,
            "queue": 0 if session is None else len(session.queue),
            "packets": broker.packets(),
            "memory": broker.queue_memory.bytes,
            "closed": {name: client.closed() for name, client in self.clients.items()},
            "unacknowledged": {
                name: client.client.connection.unacknowledged
                for name, client in self.clients.items()
            },
            "last": {name: client.client.last_received for name, client in self.clients.items()},
            "traffic": [
                getattr(traffic, name)
                for name in sorted(traffic.__slots__)
                if name not in ("network_sent", "full_at", "turns")
            ],
        }


def _fields(message: Any) -> list[Any]:
    names = ("topic", "payload", "qos", "client_id", "username", "arrived", "received_at")
    return [getattr(message, name) for name in (*names, "commit_within")]


PUBLISHERS = st.sampled_from(("one", "two"))
ACTIONS = st.one_of(
    st.tuples(
        st.just("publish"),
        PUBLISHERS,
        st.sampled_from((0, 0, 0, 1)),
        st.sampled_from((1, 1, 1, 1, 0, 2)),
        st.sampled_from((4, 4, 4, 0, 118, 200)),
        st.sampled_from((1, 1, 1, 1, 1, 2, 0)),
    ),
    st.tuples(st.just("acknowledge"), st.integers(0, 2), st.sampled_from((1, 1, 1, 2))),
    st.tuples(st.just("ping"), st.sampled_from(("one", "two", "subscriber"))),
    st.tuples(st.just("connect"), st.sampled_from(("one", "two", "subscriber"))),
    st.tuples(
        st.just("subscribe"), st.sampled_from(("one", "two", "subscriber")), st.integers(0, 2)
    ),
    st.tuples(st.just("unsubscribe"), st.sampled_from(("one", "subscriber"))),
    st.tuples(st.just("slow"), st.sampled_from(("one", "subscriber")), st.booleans()),
)
ONE: Any = ("publish", "one", 0, 1, 4, 1)
CONVERSATION = [ONE, ("acknowledge", 0, 1), ONE, ("acknowledge", 0, 1), ONE]
"""After this a message is on its way that went the lone way, and the next may, too."""

SEQUENCES = st.lists(
    st.one_of(st.just(CONVERSATION), st.just([ONE]), ACTIONS.map(lambda action: [action, ONE])),
    max_size=12,
).map(lambda parts: [action for part in parts for action in part])


def perform(world: World, actions: list[tuple[Any, ...]]) -> list[dict[str, Any]]:
    """Do it all; return what could be seen after each action."""
    found = []
    for name, *arguments in actions:
        if not any(client.closed() for client in world.clients.values()) or name == "connect":
            getattr(world, name)(*arguments)
        found.append({"seen": list(world.seen)})
    found.append(world.figures())
    return found


@given(
    SEQUENCES,
    st.tuples(st.sampled_from((MQTT_3_1_1, MQTT_5)), st.sampled_from((MQTT_3_1_1, MQTT_5))),
    st.booleans(),
    st.integers(1, 4),
    st.sampled_from((1, 1, 0)),
)
def test_both_ways_come_to_the_same(
    actions: list[tuple[Any, ...]],
    versions: tuple[int, int],
    persistent: bool,
    receive_maximum: int,
    qos: int,
) -> None:
    ordinary, waiting, lone = (
        perform(World(ways, alone, versions, persistent, receive_maximum, qos), actions)
        for ways, alone in ((False, False), (True, False), (True, True))
    )
    assert waiting == ordinary
    assert lone == ordinary


def test_both_ways_were_compared() -> None:
    world = World(True, True, (MQTT_5, MQTT_5), persistent=False, receive_maximum=4)
    for _ in range(5):
        world.publish("one", 0, 1, 4, 1)
        world.acknowledge(0, 1)
    assert world.clients["one"].client.numbered_way is not None
    # all but the first, which was looked at as a packet, was written before the turn's end
    assert [wire.count > 0 for wire in world.wires] == [True, True, False]
    assert len(world.seen) == 1 + 10
