"""Receivers that need more than the bytes as they came: what one needs costs the others nothing."""

from collections.abc import Callable

import pytest

from gateway.broker.publishing.publish import MAXIMUM_FILTERED
from gateway.mqtt.connection import MAXIMUM_UNSENT
from gateway.mqtt.message import Message
from gateway.mqtt.packets import MQTT_3_1_1, PubAck, PubRec, SubscriptionRequest
from gateway.mqtt.properties import Properties
from gateway.mqtt.reason_codes import ReasonCode
from gateway.settings.broker import BrokerSettings
from gateway.settings.when_full import WhenFull
from tests.support.broker.broker_harness import Harness
from tests.support.broker.durable_broker import DurableHarness
from tests.support.broker.inline import Inline
from tests.support.broker.memory_client import MemoryClient
from tests.support.broker.payloads import payloads
from tests.support.broker.publishing import batch, codes, published, subscriber

N = 20
ALL = [b"%d" % number for number in range(1, N + 1)]
QUOTA = ReasonCode.QUOTA_EXCEEDED
SUCCESS = ReasonCode.SUCCESS


def windows(harness: Harness, name: str) -> list[int]:
    """Return the messages of each span that was sent to a client, and so left as one."""
    return [span.count for span in harness.session(name).inflight.spans()]


def queued(harness: Harness, name: str) -> list[int]:
    """Return the messages of each span that waits for a client."""
    return [span.count for span in harness.session(name).queue]


class Refusing(Inline):
    """Refuses the messages with these payloads."""

    def __init__(self, *refused: bytes) -> None:
        super().__init__()
        self.refused = set(refused)

    def receive(self, message: Message, topic_filters: list[str]) -> ReasonCode:
        self.answer = QUOTA if message.payload in self.refused else SUCCESS
        return super().receive(message, topic_filters)


def away(harness: Harness, name: str) -> MemoryClient:
    client = harness.persistent(name)
    client.subscribe("a/b", 1)
    client.drop()
    return client


def filtered(harness: Harness, name: str) -> MemoryClient:
    client = harness.connect(name)
    client.subscribe_all([SubscriptionRequest("a/b", 1)], where="payload > 15")
    return client


def identified(harness: Harness, name: str) -> MemoryClient:
    client = harness.connect(name)
    client.subscribe_all([SubscriptionRequest("a/b", 1)], identifier=7)
    return client


def shared(harness: Harness, name: str) -> MemoryClient:
    for each in ("other member", name):
        client = harness.connect(each)
        client.subscribe("$share/g/a/b", 1)
    return client


def with_aliases(harness: Harness, name: str) -> MemoryClient:
    client = harness.connect(name, properties=Properties(topic_alias_maximum=5))
    client.subscribe("a/b", 1)
    return client


def narrow(harness: Harness, name: str) -> MemoryClient:
    """Return a client that is sent five messages, and then acknowledges nothing."""
    client = harness.connect(name, receive_maximum=5)
    client.subscribe("a/b", 1)
    return client


def slow(harness: Harness, name: str) -> MemoryClient:
    client = harness.persistent(name)
    client.subscribe("a/b", 1)
    client.reads = False
    client.client.connection.send_encoded(bytes(MAXIMUM_UNSENT), 1)
    return client


def older(harness: Harness, name: str) -> MemoryClient:
    client = harness.connect(name, MQTT_3_1_1)
    client.subscribe("a/b", 1)
    return client


def at_qos_0(harness: Harness, name: str) -> MemoryClient:
    client = harness.connect(name)
    client.subscribe("a/b", 0)
    return client


def small(harness: Harness, name: str) -> MemoryClient:
    """Return a client that is sent nothing of two digits."""
    client = harness.connect(name)
    client.client.connection.maximum_packet_size = 11  # less than its CONNACK
    client.subscribe("a/b", 1)
    return client


Receiver = Callable[[Harness, str], MemoryClient]

RECEIVERS: dict[Receiver, list[bytes]] = {
    away: [],
    filtered: ALL[15:],
    identified: ALL,
    shared: ALL[N // 2 :],
    with_aliases: ALL,
    narrow: ALL[:5],
    slow: [],
    older: ALL,
    at_qos_0: ALL,
    small: ALL[:9],
}
"""What each gets at once of a batch."""


@pytest.mark.uncovered
@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("receiver", RECEIVERS)
def test_a_receiver_that_needs_more_costs_only_itself(
    harness: Harness, receiver: Receiver, *, first: bool
) -> None:
    client = receiver(harness, "c") if first else None
    plain = harness.connect("plain")
    plain.subscribe("a/b", 1)
    client = client or receiver(harness, "c")
    publisher = harness.connect("publisher")
    publisher.send(*batch(N, 1))
    assert windows(harness, "plain") == [N]
    assert published(plain) == batch(N, 1)
    assert publisher.take() == [PubAck(number) for number in range(1, N + 1)]
    assert payloads(client.take()) == RECEIVERS[receiver]


@pytest.mark.parametrize(("receiver", "waiting"), [(away, [N]), (slow, [N]), (narrow, [N - 5])])
def test_what_waits_waits_as_one(harness: Harness, receiver: Receiver, waiting: list[int]) -> None:
    receiver(harness, "c")
    harness.connect("publisher").send(*batch(N, 1))
    assert queued(harness, "c") == waiting


def test_all_of_them_at_once_and_a_part_of_the_gateway_that_refuses_one(harness: Harness) -> None:
    plain, inline = harness.connect("plain"), Refusing(b"7")
    plain.subscribe("a/b", 1)
    harness.broker.subscribe_inline(inline, ["a/#"])
    clients = {each: each(harness, each.__name__) for each in RECEIVERS if each is not shared}
    publisher = harness.connect("publisher")
    publisher.send(*batch(N, 1))
    accepted = [each for each in ALL if each != b"7"]
    assert codes(publisher) == [QUOTA if number == 7 else SUCCESS for number in range(1, N + 1)]
    assert [message.payload for message in inline.taken] == accepted
    assert windows(harness, "plain") == [6, N - 7]
    assert payloads(plain.take()) == accepted
    assert queued(harness, "away") == queued(harness, "slow") == [6, N - 7]
    for receiver, client in clients.items():
        expected = [each for each in RECEIVERS[receiver] if each != b"7"]
        assert payloads(client.take()) == expected


@pytest.mark.parametrize("k", [1, 2, N])
@pytest.mark.parametrize("qos", [1, 2])
def test_what_a_part_of_the_gateway_refuses_of_a_batch_reaches_nobody(
    harness: Harness, qos: int, k: int
) -> None:
    receiver, inline, after = subscriber(harness), Refusing(b"%d" % k), Inline("after")
    harness.broker.subscribe_inline(inline, ["a/#"])
    harness.broker.subscribe_inline(after, ["#"])
    publisher = harness.connect("publisher")
    publisher.send(*batch(N, qos))
    answer = PubAck if qos == 1 else PubRec
    assert publisher.take() == [
        answer(number, QUOTA if number == k else SUCCESS) for number in range(1, N + 1)
    ]
    accepted = [each for each in ALL if each != b"%d" % k]
    assert payloads(receiver.take()) == accepted
    assert [message.payload for message in inline.taken] == accepted


def test_a_refused_message_of_a_batch_closes_an_older_client(harness: Harness) -> None:
    receiver = subscriber(harness)
    harness.broker.subscribe_inline(Refusing(b"3"), ["#"])
    publisher = harness.connect("publisher", MQTT_3_1_1)
    publisher.send(*batch(5, 1))
    assert publisher.take() == [PubAck(1), PubAck(2)]
    assert publisher.closed()
    assert payloads(receiver.take()) == [b"1", b"2"]


@pytest.mark.parametrize("by", ["a filter", "a part of the gateway"])
def test_what_is_looked_at_one_by_one_is_bounded(harness: Harness, by: str) -> None:
    plain = harness.connect("plain", receive_maximum=200)
    plain.subscribe("a/b", 1)
    if by == "a filter":
        filtered(harness, "c")
    else:
        harness.broker.subscribe_inline(Inline(), ["#"])
    harness.connect("publisher").send(*batch(100, 1))
    assert windows(harness, "plain") == [MAXIMUM_FILTERED, 100 - MAXIMUM_FILTERED]


# --- room -----------------------------------------------------------------------------------


@pytest.mark.parametrize("qos", [1, 2])
@pytest.mark.parametrize("make", [Harness, DurableHarness])
def test_the_smallest_room_bounds_what_is_taken_of_a_batch(
    make: Callable[[BrokerSettings], Harness], qos: int
) -> None:
    harness = make(BrokerSettings(maximum_queued_messages=5, queue_when_full=WhenFull.REJECT))
    plain = harness.connect("plain")
    plain.subscribe("a/b", 1)
    away(harness, "c")
    publisher = harness.connect("publisher")
    publisher.send(*batch(7, qos))
    assert codes(publisher) == [SUCCESS] * 5 + [QUOTA] * 2
    assert payloads(plain.take()) == ALL[:5]
    assert harness.counters.count("tidegate/queues/rejected") == 2


@pytest.mark.parametrize("plain", [False, True])
def test_only_what_a_filtered_session_has_no_room_for_is_refused(*, plain: bool) -> None:
    harness = Harness(BrokerSettings(maximum_queued_messages=2, queue_when_full=WhenFull.REJECT))
    if plain:
        harness.connect("plain").subscribe("a/b", 1)
    client = harness.persistent("c")
    client.subscribe_all([SubscriptionRequest("a/b", 1)], where="payload IN (2, 4, 5, 7)")
    client.drop()
    publisher = harness.connect("publisher")
    publisher.send(*batch(8, 1))
    refused = [code == QUOTA for code in codes(publisher)]
    assert refused == [number in (5, 7) for number in range(1, 9)]
    assert harness.counters.count("tidegate/queues/rejected") == 2
    assert payloads(harness.persistent("c").take()) == [b"2", b"4"]


def test_a_store_that_is_full_takes_nothing_that_is_kept() -> None:
    harness = DurableHarness()
    harness.persistent("c").subscribe("a/b", 1)
    harness.disk.full = True
    publisher = harness.connect("publisher")
    publisher.send(*batch(3, 1))
    assert codes(publisher) == [QUOTA] * 3
    assert harness.counters.count("tidegate/storage/rejected") == 3
    publisher.send(*batch(2, 0), *batch(2, 1, topic="elsewhere"))
    assert codes(publisher) == [ReasonCode.NO_MATCHING_SUBSCRIBERS] * 2
