"""Topic aliases on what a session sends, whatever becomes of its connections."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from gateway.counters import Counters
from gateway.mqtt.alias_budget import AliasBudget
from gateway.mqtt.connection import Connection
from gateway.mqtt.decode import decode
from gateway.mqtt.framing import Framer
from gateway.mqtt.outbound_aliases import MAPPING_OVERHEAD, OutboundAliases
from gateway.mqtt.packets import MQTT_5, PubAck, Publish
from gateway.session.session import Session
from tests.support.sessions import acknowledge, deliver

TOPICS = ["a", "a/b/c", *(f"site/floor/device/{name}" for name in ("a", "b", "c", "d"))]


class Receiver:
    """What a client makes of the bytes of one connection."""

    def __init__(self, connection: Connection, maximum: int) -> None:
        self.connection = connection
        self.maximum = maximum
        self.topics: dict[int, str] = {}
        self.framer = Framer(0xFFFFFFFF)

    def read(self, committed: int) -> list[Publish]:
        """Return the messages that may leave, with their topic names."""
        self.framer.feed(bytes(self.connection.data_to_send(committed) or b""))
        messages = []
        while (frame := self.framer.next_frame()) is not None:
            _, _, start, end = frame
            assert end - start + 2 <= self.connection.maximum_packet_size
            packet = decode(*frame, MQTT_5)
            if isinstance(packet, Publish):
                messages.append(self.resolve(packet))
        return messages

    def resolve(self, packet: Publish) -> Publish:
        alias = packet.properties.topic_alias
        if alias is not None:
            assert 1 <= alias <= self.maximum
            assert not packet.dup
            if packet.topic:
                self.topics[alias] = packet.topic
            packet.topic = self.topics[alias]
        return packet


class Subscriber(RuleBasedStateMachine):
    """A client that comes and goes sees every message under the topic it was published to."""

    def __init__(self) -> None:
        super().__init__()
        self.budget = AliasBudget(client_bytes=3 * (MAPPING_OVERHEAD + 30))
        self.session = Session("c", Counters())
        self.session.expiry_interval = 60
        self.receiver: Receiver | None = None
        self.topics: list[str] = []  # of each message
        self.seen: set[int] = set()
        self.unacknowledged: list[int] = []
        self.batch = 1

    @precondition(lambda self: self.receiver is None)
    @rule(aliases=st.integers(0, 4), limit=st.sampled_from([40, 50, 60, 0xFFFFFFFF]))
    def connect(self, aliases: int, limit: int) -> None:
        connection = Connection(1_024)
        connection.version = MQTT_5
        connection.maximum_packet_size = limit
        if aliases:
            connection.outbound_aliases = OutboundAliases(aliases, self.budget)
        self.receiver = Receiver(connection, aliases)
        self.session.attach(connection, 5)
        self.session.pump(0.0)

    @precondition(lambda self: self.receiver is not None)
    @rule()
    def lose_the_connection(self) -> None:
        assert self.receiver is not None
        self.session.detach()
        self.receiver.connection.close()
        self.receiver = None
        self.unacknowledged.clear()

    @rule(
        topic=st.sampled_from(TOPICS),
        qos=st.integers(0, 1),
        size=st.integers(2, 40),
        count=st.integers(1, 3),
    )
    def publish(self, topic: str, qos: int, size: int, count: int) -> None:
        numbers = range(len(self.topics), len(self.topics) + count)
        payloads = [b"%d" % number + b" " * size * (number % 2) for number in numbers]
        self.topics += [topic] * count
        deliver(self.session, *payloads, qos=qos, topic=topic)

    @precondition(lambda self: self.receiver is not None)
    @rule()
    def answer_waits_for_the_disk(self) -> None:
        assert self.receiver is not None
        self.receiver.connection.send(PubAck(1), self.batch)

    @rule()
    def commit(self) -> None:
        self.batch += 1

    @precondition(lambda self: self.receiver is not None)
    @rule()
    def read(self) -> None:
        assert self.receiver is not None
        for publish in self.receiver.read(self.batch - 1):
            number = int(publish.payload)
            assert publish.topic == self.topics[number]
            self.seen.add(number)
            if publish.qos:
                self.unacknowledged.append(publish.packet_id)
        self.session.pump(0.0)

    @precondition(lambda self: bool(self.unacknowledged))
    @rule()
    def acknowledge(self) -> None:
        acknowledge(self.session, self.unacknowledged.pop(0))

    @invariant()
    def memory_is_given_back(self) -> None:
        figures = self.budget.figures
        assert figures.bytes_held <= self.budget.client_bytes
        if self.receiver is None:
            assert figures.bytes_held == 0


TestSubscriber = Subscriber.TestCase
