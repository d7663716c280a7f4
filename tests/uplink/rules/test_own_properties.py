"""What a client says of its message changes no number; what came down a link has none."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.access.topics import DELAY
from gateway.broker.own_names import UPLINK_CLIENT
from gateway.mqtt.message import Message
from gateway.mqtt.packets import PubAck, Publish
from gateway.mqtt.properties import Properties
from gateway.uplink.rules.rule import Rule
from gateway.uplink.rules.rules import RuleSet
from tests.support.broker.broker_harness import Harness
from tests.support.broker.channel_harness import messages
from tests.support.disk.storage import Store

EPOCH = "00a1b2c3d4"
NAMES = (
    *("hops", "seq", "time", "resent", "was", "clientid", "username", "attempt", "topic"),
    *("channel", "$deliver", "$where", "$delay", "$uplink", "a"),
)
VALUES = (
    "",
    "barn",
    "north,barn",
    "1",
    "0",
    "21",
    f"{EPOCH}.main.9",
    "FALSE",
    "dropped",
    "$uplink",
)
PAIRS = st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(VALUES)), max_size=5).map(tuple)


def _rules(store: Store, topic: str = "#") -> RuleSet:
    return RuleSet([Rule(topic)], store.outbox, store.counters, EPOCH)


async def test_user_properties_go_on_unaltered_and_change_no_number(store: Store) -> None:
    harness, rules = Harness(), _rules(store)
    harness.broker.subscribe_inline(rules, rules.topic_filters)
    publisher, subscriber = harness.connect("p"), harness.connect("s")
    subscriber.subscribe("#", 1)
    sent: list[tuple[tuple[str, str], ...]] = []

    @given(pairs=PAIRS, qos=st.sampled_from((0, 1)))
    def publish(pairs: tuple[tuple[str, str], ...], qos: int) -> None:
        properties = Properties(user_properties=pairs)
        packet_id = 1 if qos else 0
        publisher.send(Publish("t", b"x", qos, packet_id=packet_id, properties=properties))
        publisher.take()
        [received] = messages(subscriber)
        assert received.properties.user_properties == pairs
        if received.qos:
            subscriber.send(PubAck(received.packet_id))
        sent.append(pairs)
        assert [(each.stream, each.number) for each in rules.numbers] == [("main", len(sent))]

    publish()
    await store.settle()
    rows = await store.outbox.fetch(0, len(sent) + 1)
    assert [row.seq for row in rows] == list(range(1, len(sent) + 1))
    assert [row.message.user_properties for row in rows] == sent


async def test_delayed_messages_are_numbered_whatever_they_say(store: Store) -> None:
    harness, rules = Harness(), _rules(store)
    harness.broker.subscribe_inline(rules, rules.topic_filters)
    client = harness.connect("p")
    forged = Properties(user_properties=(("hops", "barn"),))
    client.send(Publish(f"{DELAY}5/later", b"x", 1, packet_id=1, properties=forged))
    assert rules.numbers == []
    harness.pass_time(6)
    assert [each.number for each in rules.numbers] == [1]


async def test_what_came_down_gets_no_number(store: Store) -> None:
    rules = _rules(store)
    came = Message("t", b"x", 1, client_id=UPLINK_CLIENT, received_at=1_000)
    rules.receive(Message("t", b"x", 1, received_at=1_000), ["#"])
    rules.receive(came, ["#"])
    assert rules.numbers == []
    rules.receive(Message("t", b"x", 1, received_at=1_000), ["#"])
    assert [each.number for each in rules.numbers] == [2]
