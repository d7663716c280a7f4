"""Messages whose filters take more than a turn are asked about in several, in their order."""

import pytest

from gateway.mqtt.codec.packet_codec import encode
from gateway.mqtt.message import Message
from gateway.mqtt.packets import MQTT_5, PingReq, PubAck, Publish, PubRec
from gateway.mqtt.reason_codes import ReasonCode
from gateway.routing.budget import PIECES
from gateway.settings.broker import BrokerSettings
from tests.support.broker.broker_harness import Harness
from tests.support.broker.inline import Inline
from tests.support.broker.memory_client import MemoryClient
from tests.support.broker.subscribing import request

LONG = ("é" * 10_000).encode()


def costs(millions: int) -> str:
    """Return an expression of somebody's own that costs so much for LONG, and is TRUE."""
    terms = [f"payload LIKE '%_{{0}}x{number}%'" for number in range(millions)]
    return f"NOT ({' OR '.join(terms)})"


@pytest.fixture
def harness() -> Harness:
    return Harness(BrokerSettings(maximum_filtered_subscriptions=1_000))


def filtering(harness: Harness, count: int, millions: int = 3) -> list[MemoryClient]:
    """Return so many clients with a filter of their own, each of which takes most of a turn."""
    clients = [harness.connect(f"f{number}") for number in range(count)]
    for number, client in enumerate(clients):
        client.subscribe_all([request("t", 1)], costs(millions).format(number))
    return clients


def turns(harness: Harness, client: MemoryClient, *packets: Publish) -> int:
    """Send packets, with time going by after each piece; return how many pieces it took."""
    data = b"".join(encode(packet, MQTT_5) for packet in packets)
    count = 1
    while harness.broker.receive(client.client, data, harness.instant):
        data = b""
        count += 1
        harness.now += 0.01
        harness.settle()
    harness.settle()
    return count


def begin(harness: Harness, publisher: MemoryClient) -> None:
    data = encode(Publish("t", LONG), MQTT_5)
    assert harness.broker.receive(publisher.client, data, harness.instant)


@pytest.mark.uncovered
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_everybody_gets_what_it_wants_once_and_in_order(harness: Harness, qos: int) -> None:
    clients, publisher = filtering(harness, 6), harness.connect("p")
    plain = harness.connect("plain")
    plain.subscribe("t", 0)
    sent = [Publish("t", LONG + b"%d" % n, qos, packet_id=n if qos else 0) for n in (1, 2, 3)]
    assert turns(harness, publisher, *sent) >= 9
    for client in (*clients, plain):
        got = [each for each in client.take() if isinstance(each, Publish)]
        assert [each.payload for each in got] == [each.payload for each in sent]
    answer = {0: None, 1: PubAck, 2: PubRec}[qos]
    assert [(type(each), each.packet_id) for each in publisher.take()] == [  # type: ignore[union-attr]  # answers alone
        (answer, number) for number in (1, 2, 3) if qos
    ]
    assert harness.broker.budget.over.count == 0
    assert harness.broker.traffic.messages_received == 3


@pytest.mark.uncovered
@pytest.mark.parametrize(("count", "qos"), [(2, 0), (3, 0), (4, 0), (5, 0), (6, 1), (7, 1)])
def test_messages_that_cost_little_end_a_turn_between_two_of_them(
    harness: Harness, count: int, qos: int
) -> None:
    """Each of these filters is quick; those of all messages that came together are not."""
    clients, publisher = filtering(harness, count, 1), harness.connect("p")
    plain = harness.connect("plain")
    plain.subscribe("t", qos)
    short = LONG[: len(LONG) // 30]
    sent = [Publish("t", short, qos, packet_id=n if qos else 0) for n in range(1, 61)]
    assert turns(harness, publisher, *sent) > 1
    assert len(plain.take()) == 60
    assert [len(client.take()) for client in clients] == [60] * count
    assert len(publisher.take()) == 60 * qos


class Rules(Inline):
    """Rules of an uplink whose expressions take most of a turn for each message."""

    def __init__(self, harness: Harness) -> None:
        super().__init__("rules")
        self._budget = harness.broker.budget

    def receive(self, message: Message, topic_filters: list[str]) -> ReasonCode:
        self._budget.spend(3_000_000)
        return super().receive(message, topic_filters)


def test_what_rules_cost_ends_a_turn_between_two_messages(harness: Harness) -> None:
    rules, publisher, plain = Rules(harness), harness.connect("p"), harness.connect("plain")
    harness.broker.subscribe_inline(rules, ["t"])
    plain.subscribe("t")
    sent = [Publish("t", b"%d" % number) for number in range(6)]
    assert turns(harness, publisher, *sent) > 1
    assert [message.payload for message in rules.taken] == [each.payload for each in sent]
    assert len(plain.take()) == 6


def test_others_have_their_turn_meanwhile(harness: Harness) -> None:
    clients, publisher, other = filtering(harness, 8), harness.connect("p"), harness.connect("o")
    data = encode(Publish("t", LONG), MQTT_5) + encode(PingReq(), MQTT_5)
    assert harness.broker.receive(publisher.client, data, harness.instant)
    other.send(Publish("t", b"of another"))
    assert [each.payload for each in clients[0].take()] == [b"of another"]  # type: ignore[union-attr]  # publications alone
    assert publisher.take() == []
    publisher.send_bytes(b"")
    assert [each.payload for each in clients[0].take()] == [LONG]  # type: ignore[union-attr]  # likewise
    assert len(publisher.take()) == 1


def test_many_messages_that_came_together_are_not_one_turn(harness: Harness) -> None:
    (client,), publisher = filtering(harness, 1), harness.connect("p")
    sent = [Publish("t", LONG)] * 10
    assert turns(harness, publisher, *sent) >= 5
    assert len(client.take()) == 10


@pytest.mark.uncovered
def test_filters_that_need_too_many_turns_are_null(harness: Harness) -> None:
    clients, publisher = filtering(harness, PIECES + 10, 7), harness.connect("p")
    assert PIECES <= turns(harness, publisher, Publish("t", LONG)) <= PIECES + 2
    got = [client.take() != [] for client in clients]
    assert got.count(True) >= PIECES
    assert harness.broker.budget.over.count == got.count(False) > 0


def test_a_subscription_that_ends_meanwhile_gets_nothing(harness: Harness) -> None:
    clients, publisher = filtering(harness, 8), harness.connect("p")
    begin(harness, publisher)
    clients[0].drop()
    late = harness.connect("late")
    late.subscribe("t")
    publisher.send_bytes(b"")
    assert [len(client.take()) for client in (*clients[1:], late)] == [1] * 8


@pytest.mark.uncovered
def test_each_message_counts_once_among_those_routed(harness: Harness) -> None:
    filtering(harness, 6)
    publisher, admissions = harness.connect("p"), harness.broker.admissions
    asked = admissions.hits + admissions.misses
    assert turns(harness, publisher, *[Publish("t", LONG)] * 3) >= 9
    assert admissions.hits + admissions.misses == asked + 3


def test_a_message_whose_route_changes_meanwhile_counts_once(harness: Harness) -> None:
    filtering(harness, 8)
    publisher, admissions = harness.connect("p"), harness.broker.admissions
    begin(harness, publisher)
    counted = admissions.hits, admissions.misses
    harness.connect("late").subscribe("t")
    publisher.send_bytes(b"")
    assert (admissions.hits, admissions.misses) == counted


def test_nothing_goes_on_for_a_client_that_was_closed(harness: Harness) -> None:
    clients, publisher = filtering(harness, 8), harness.connect("p")
    begin(harness, publisher)
    harness.connect("p")
    assert publisher.closed()
    assert [client.take() for client in clients] == [[]] * 8


def test_a_sensors_message_is_asked_about_at_once(harness: Harness) -> None:
    clients = filtering(harness, 8)
    plain = harness.connect("plain")
    plain.subscribe("t")
    harness.publish("t", LONG)
    got = [client.take() != [] for client in clients]
    assert 0 < got.count(True) < 8
    assert len(plain.take()) == 1
    assert harness.broker.budget.over.count == got.count(False)


def test_what_a_message_brings_about_is_not_put_off(harness: Harness) -> None:
    clients, publisher = filtering(harness, 3), harness.connect("p")
    publisher.client.session  # noqa: B018 - it has one
    harness.broker.budget.pieces = 0
    harness.publish("t", b"short")
    assert harness.broker.budget.pieces == 0
    assert [len(client.take()) for client in clients] == [1] * 3
