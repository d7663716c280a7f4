"""Packets with thousands of topic filters: others have their turn meanwhile, the order stays."""

import pytest

from gateway.broker import handlers
from gateway.broker.broker import MAXIMUM_COST
from gateway.broker.client import HELD
from gateway.broker.publishing.publish import BY_THEMSELVES
from gateway.broker.subscribing.ended_subscriptions import PIECE
from gateway.mqtt.codec.packet_codec import encode
from gateway.mqtt.packets import (
    MQTT_5,
    Packet,
    PingReq,
    PingResp,
    Publish,
    PubRec,
    PubRel,
    SubAck,
    Subscribe,
    SubscriptionRequest,
    UnsubAck,
    Unsubscribe,
)
from gateway.mqtt.reason_codes import ReasonCode
from gateway.routing.subscriptions.subscription import Subscription
from gateway.settings.broker import BrokerSettings
from tests.support.broker.broker_harness import Harness
from tests.support.broker.memory_client import MemoryClient
from tests.support.disk.held_disk import Disk

MANY = 3_000
FILTERS = [f"a/{number}" for number in range(MANY)]
SUBSCRIBE = Subscribe(1, [SubscriptionRequest(each) for each in FILTERS])
UNSUBSCRIBE = Unsubscribe(2, FILTERS)


def piecemeal(client: MemoryClient, *packets: Packet) -> int:
    """Send packets at once; return after how many pieces all of them were handled.

    After each of these another client's PINGREQ is answered.
    """
    harness = client.harness
    other = harness.connect("other")
    data, pieces = b"".join(encode(packet, client.version) for packet in packets), 1
    while harness.broker.receive(client.client, data, harness.instant):
        data = b""
        pieces += 1
        other.send(PingReq())
        assert other.take() == [PingResp()]
        harness.settle()
    harness.settle()
    other.drop()
    return pieces


@pytest.mark.uncovered
@pytest.mark.parametrize("kind", [PubRec, PubRel])
def test_acknowledgements_that_are_looked_at_one_by_one_take_several_pieces(
    kind: type[PubRec | PubRel],
) -> None:
    client = Harness().connect("c")
    acknowledgements = [kind(number) for number in range(1, 6 * MAXIMUM_COST * BY_THEMSELVES)]
    assert piecemeal(client, *acknowledgements, PingReq()) > 3
    *answers, last = client.take()
    assert len(answers) == len(acknowledgements)
    assert last == PingResp()


def test_what_comes_behind_a_subscribe_waits_for_its_end() -> None:
    client = Harness().connect("c")
    own = Publish(FILTERS[-1], b"own")
    assert piecemeal(client, SUBSCRIBE, PingReq(), own, UNSUBSCRIBE, own) > 20
    assert client.take() == [
        SubAck(1, [ReasonCode.SUCCESS] * MANY),
        PingResp(),
        own,
        UnsubAck(2, [ReasonCode.SUCCESS] * MANY),
    ]


@pytest.mark.parametrize("packet", [SUBSCRIBE, UNSUBSCRIBE])
def test_a_malformed_filter_at_the_end_lets_none_take_effect(
    packet: Subscribe | Unsubscribe,
) -> None:
    harness = Harness()
    client = harness.persistent("c")
    client.subscribe(FILTERS[0])
    data = bytearray(encode(packet, MQTT_5))
    place = data.rindex(FILTERS[-1].encode())
    data[place : place + 2] = b"#/"
    client.send_bytes(bytes(data))
    assert client.closed()
    assert len(harness.broker.router) == 1


@pytest.mark.uncovered
def test_suback_waits_for_the_batches_of_all_pieces() -> None:
    disk = Disk()
    harness = Harness(disk=disk)
    client = harness.connect("c")
    broker = harness.broker
    data = encode(SUBSCRIBE, client.version)

    def journal(_: int, subscription: Subscription) -> None:
        disk.gather(subscription.topic_filter == FILTERS[0])

    broker.router.on_add.append(journal)
    while broker.receive(client.client, data, harness.instant):
        data = b""
    harness.settle()
    assert client.take() == []
    harness.commit()
    assert [type(each) for each in client.take()] == [SubAck]


@pytest.mark.uncovered
def test_a_client_that_is_taken_over_is_granted_nothing_more() -> None:
    harness = Harness()
    client = harness.persistent("c")
    data = encode(SUBSCRIBE, client.version)
    for _ in range(60):
        assert harness.broker.receive(client.client, data, harness.instant)
        data = b""
    before = len(harness.broker.router)
    assert 0 < before < MANY
    successor = harness.persistent("c")
    assert not harness.broker.receive(client.client, b"", harness.instant)
    assert len(harness.broker.router) == before
    assert successor.connack.session_present


@pytest.mark.uncovered
def test_subscriptions_of_a_session_that_ended_go_a_piece_at_a_time() -> None:
    harness = Harness()
    client = harness.connect("c")
    client.send(SUBSCRIBE)
    client.drop()
    router = harness.broker.router
    assert len(router) == MANY - PIECE
    publisher = harness.connect("p")
    publisher.send(Publish(FILTERS[0], b"x", 1, packet_id=1))  # to nobody, and nothing fails
    turns = 0
    while len(router):
        harness.pass_time(0.001)
        turns += 1
    assert turns == MANY / PIECE - 1


def test_a_session_that_ended_is_given_nothing_of_a_shared_subscription() -> None:
    harness = Harness(BrokerSettings(maximum_shared_subscriptions=MANY))
    gone, member = harness.connect("gone"), harness.connect("member")
    shared = [SubscriptionRequest(f"$share/g/{each}") for each in FILTERS]
    gone.send(Subscribe(1, shared))
    member.send(Subscribe(1, shared))
    member.take()
    gone.drop()
    publisher = harness.connect("p")
    for topic in (FILTERS[0], FILTERS[-1]):
        for number in range(4):
            publisher.send(Publish(topic, bytes([number])))
    assert len(member.take()) == 8


def test_while_writes_are_behind_nothing_is_published_and_all_else_is_handled() -> None:
    harness = Harness()
    client, other = harness.connect("c"), harness.connect("other")
    client.subscribe("t")
    harness.broker.traffic.unfinished = True
    data = encode(Publish("t", b"x"), MQTT_5)
    assert harness.broker.receive(client.client, data, harness.instant)
    harness.settle()
    assert client.take() == []
    other.send(PingReq())
    assert other.take() == [PingResp()]
    harness.broker.traffic.unfinished = False
    client.send_bytes(b"")
    assert [type(each) for each in client.take()] == [Publish]


def test_a_client_that_is_gone_goes_on_with_nothing_after_a_pause() -> None:
    harness = Harness()
    client = harness.connect("c").client
    handlers._wait(harness.broker.deadlines, client, iter(()), 1.0, harness.instant)  # type: ignore[arg-type]  # never asked
    assert client.pieces is HELD
    client.pieces = None
    harness.pass_time(2)
    assert client.pieces is None
