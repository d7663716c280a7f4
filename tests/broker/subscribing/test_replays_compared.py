"""What clients get while replays take many turns, against what they get if each is done at once."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from gateway.mqtt.packets import PubAck, Publish, Subscribe, SubscriptionRequest
from tests.support.broker.broker_harness import Harness
from tests.support.broker.memory_client import MemoryClient

NAMES = st.sampled_from("abcdefgh")
TOPICS = st.builds("{}/{}".format, NAMES, st.sampled_from("xy"))
FILTERS = st.sampled_from(["#", "+/x", "a/#", "+/+", "b/x"])
CLIENTS = ("one", "two")


class ReplaysCompared(RuleBasedStateMachine):
    """For each topic a client gets the same messages in the same order.

    The one broker has room for three messages in a turn, the other for all. What a client is sent
    twice, because it subscribes again before the first replay is over, counts once.
    """

    def __init__(self) -> None:
        super().__init__()
        self.harnesses = (Harness(), Harness())
        self.harnesses[0].broker.replays.turn_messages = 12
        self.got: list[dict[tuple[str, str], list[tuple[bytes, bool]]]] = [{}, {}]
        self.clients: list[dict[str, MemoryClient]] = [{}, {}]
        for harness, clients in zip(self.harnesses, self.clients, strict=True):
            for name in CLIENTS:
                clients[name] = harness.persistent(name)
            clients["publisher"] = harness.connect("publisher")
        self.count = 0

    @rule(topic=TOPICS, retain=st.booleans(), way=st.booleans(), empty=st.booleans())
    def publish(self, topic: str, retain: bool, way: bool, empty: bool) -> None:
        self.count += 1
        payload = b"" if empty and retain else b"%d" % self.count
        for harness, clients in zip(self.harnesses, self.clients, strict=True):
            if way:
                packet = Publish(topic, payload, 1, retain, packet_id=1)
                clients["publisher"].send(packet, packet)
            else:
                harness.publish(topic, payload, 1, retain=retain)

    @rule(number=st.integers(1, 8))
    def retain_many(self, number: int) -> None:
        for name in "abcdefgh"[:number]:
            for last in "xy":
                self.publish(f"{name}/{last}", retain=True, way=False, empty=False)

    @rule(name=st.sampled_from(CLIENTS), topic_filter=FILTERS, no_local=st.booleans())
    def subscribe(self, name: str, topic_filter: str, no_local: bool) -> None:
        for clients in self.clients:
            request = SubscriptionRequest(topic_filter, 1, no_local=no_local)
            if not clients[name].closed():
                clients[name].send(Subscribe(1, [request]))

    @rule(name=st.sampled_from(CLIENTS))
    def leave_or_come_back(self, name: str) -> None:
        while self.take():  # nothing is read and not acknowledged
            pass
        for harness, clients in zip(self.harnesses, self.clients, strict=True):
            if clients[name].closed():
                clients[name] = harness.persistent(name)
            else:
                clients[name].drop()

    @rule(name=st.sampled_from(CLIENTS))
    def stop_reading(self, name: str) -> None:
        for clients in self.clients:
            clients[name].reads = not clients[name].reads

    @rule()
    def pass_a_turn(self) -> None:
        self.turn()

    def turn(self) -> bool:
        for harness in self.harnesses:
            harness.pass_time(0.001)
        return self.take()

    def take(self) -> bool:
        """Take and acknowledge what has come; return whether anything has."""
        anything = False
        for clients, got in zip(self.clients, self.got, strict=True):
            for name in CLIENTS:
                packets = clients[name].take()
                anything = anything or bool(packets)
                for packet in packets:
                    if isinstance(packet, Publish):
                        known = got.setdefault((name, packet.topic), [])
                        known.append((packet.payload, packet.retain))
                answers = [
                    PubAck(each.packet_id)
                    for each in packets
                    if isinstance(each, Publish) and each.qos
                ]
                if answers:
                    clients[name].send(*answers)
        return anything

    def teardown(self) -> None:
        for harness, clients in zip(self.harnesses, self.clients, strict=True):
            for name in CLIENTS:
                clients[name].reads = True
                if clients[name].closed():
                    clients[name] = harness.persistent(name)
        for harness in self.harnesses:
            harness.settle()
        turns = 0
        while self.turn() or any(harness.broker.replays.count for harness in self.harnesses):
            turns += 1
            assert turns < 1_000
        assert [harness.broker.replays.count for harness in self.harnesses] == [0, 0]
        pieces, at_once = [
            {key: _once(messages) for key, messages in got.items()} for got in self.got
        ]
        assert pieces == at_once


def _once(messages: list[tuple[bytes, bool]]) -> list[tuple[bytes, bool]]:
    """Return them without those that say what the one before said."""
    return [
        each for before, each in zip([None, *messages], messages, strict=False) if before != each
    ]


TestReplaysCompared = ReplaysCompared.TestCase
