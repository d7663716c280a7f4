"""Shared subscriptions (MQTT 5, section 4.8.2)."""

from itertools import chain

import pytest

from tests.conformance.support import wire
from tests.conformance.support.answers import read_publish
from tests.conformance.support.peer import Peer, Peers
from tests.conformance.support.statements import keeps
from tests.conformance.support.wire import PUBACK, PUBCOMP, PUBREC, PUBREL, acknowledgement


def take_all(peers: list[Peer]) -> list[list[bytes]]:
    """Return the payloads that each has got by now."""
    heard = []
    for peer in peers:
        peer.send(wire.PINGREQ)
        payloads = []
        while (raw := peer.receive()) != wire.PINGRESP:
            payloads.append(read_publish(raw, peer.version).payload)
        heard.append(payloads)
    return heard


@keeps("5:4.8.2", "5:4.8.2-1")
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_each_message_goes_to_one_member(peers: Peers, topic: str, qos: int) -> None:
    members = [peers.connect().subscribe((f"$share/g/{topic}", qos)) for _ in range(3)]
    publisher = peers.connect()
    sent = [b"%d" % number for number in range(30)]
    for payload in sent:
        publisher.publish(topic, payload, qos)
    heard = take_all(members)
    assert sorted(chain.from_iterable(heard)) == sorted(sent)
    assert all(heard)


@keeps("5:4.8.2")
def test_groups_of_another_name_or_filter_are_others(peers: Peers, topic: str) -> None:
    filters = [f"$share/g/{topic}/a", f"$share/h/{topic}/a", f"$share/g/{topic}/+", f"{topic}/a"]
    members = [peers.connect().subscribe((topic_filter, 0)) for topic_filter in filters]
    peers.connect().publish(f"{topic}/a", b"x", 1)
    assert take_all(members) == [[b"x"]] * 4


@keeps("5:4.8.2")
def test_a_client_may_share_and_subscribe_alone(peers: Peers, topic: str) -> None:
    peer = peers.connect().subscribe((f"$share/g/{topic}", 0), (topic, 0))
    peers.connect().publish(topic, b"x", 1)
    assert take_all([peer]) == [[b"x", b"x"]]


@keeps("5:4.8.2", "5:3.3.1-9")
def test_a_shared_subscription_brings_nothing_that_is_retained(peers: Peers, topic: str) -> None:
    peers.connect().publish(topic, b"kept", 1, retain=True)
    for option in (0, wire.RETAIN_IF_NEW, wire.NO_RETAINED, wire.RETAIN_AS_PUBLISHED):
        peers.connect().subscribe((f"$share/g/{topic}", option)).expect_nothing()


@keeps("5:4.8.2-3")
def test_each_member_has_its_own_qos(peers: Peers, topic: str) -> None:
    members = [peers.connect().subscribe((f"$share/g/{topic}", qos)) for qos in (0, 1, 2)]
    publisher = peers.connect()
    for _ in range(9):
        publisher.publish(topic, b"x", 2)
    for qos, member in enumerate(members):
        member.send(wire.PINGREQ)
        while (raw := member.receive()) != wire.PINGRESP:
            assert read_publish(raw, wire.MQTT_5).qos == qos


@keeps("5:3.3.4-3")
def test_a_shared_subscription_has_an_identifier(peers: Peers, topic: str) -> None:
    peer = peers.connect()
    peer.subscribe((f"$share/g/{topic}", 0), properties=wire.subscription_identifier(9))
    peers.connect().publish(topic, b"x", 1)
    peer.expect_publish(topic, b"x", properties=[(wire.SUBSCRIPTION_IDENTIFIER, 9)])


@keeps("5:4.8.2-4")
def test_a_member_that_comes_back_gets_its_qos_2_message_completed(
    peers: Peers, topic: str
) -> None:
    first = peers.persistent().subscribe((f"$share/g/{topic}", 2))
    peers.connect().publish(topic, b"x", 2)
    number = first.expect_publish(topic, b"x", qos=2).packet_id
    second = peers.connect().subscribe((f"$share/g/{topic}", 2))
    first.reset()
    again = peers.persistent(client_id=first.client_id)
    assert again.expect_publish(topic, b"x", qos=2, dup=True).packet_id == number
    again.send(acknowledgement(PUBREC, number))
    again.expect(acknowledgement(PUBREL, number))
    again.send(acknowledgement(PUBCOMP, number))
    again.expect_nothing()
    second.expect_nothing()


@keeps("5:4.8.2-5")
def test_a_qos_2_message_of_a_session_that_ended_goes_to_nobody_else(
    peers: Peers, topic: str
) -> None:
    first = peers.persistent().subscribe((f"$share/g/{topic}", 2))
    peers.connect().publish(topic, b"x", 2)
    first.expect_publish(topic, b"x", qos=2)
    second = peers.connect().subscribe((f"$share/g/{topic}", 2))
    first.reset()
    peers.forget(first)
    second.expect_nothing()


@keeps("5:4.8.2-6")
@pytest.mark.parametrize(("qos", "first_byte"), [(1, PUBACK), (2, PUBREC)])
def test_a_message_that_a_member_refused_goes_to_nobody_else(
    peers: Peers, topic: str, qos: int, first_byte: int
) -> None:
    members = [peers.persistent().subscribe((f"$share/g/{topic}", qos)) for _ in range(2)]
    peers.connect().publish(topic, b"x", qos)
    for member in members:
        member.send(wire.PINGREQ)
        raw = member.receive()
        if raw != wire.PINGRESP:
            number = read_publish(raw, wire.MQTT_5).packet_id
            member.expect(wire.PINGRESP)
            member.send(acknowledgement(first_byte, number, 0x97))
            member.expect_nothing()
    assert take_all(members) == [[], []]


@keeps("5:4.8.2")
def test_members_come_and_go(peers: Peers, topic: str) -> None:
    shared = f"$share/g/{topic}"
    members = [peers.connect().subscribe((shared, 1)) for _ in range(3)]
    publisher = peers.connect()
    members[0].send(wire.unsubscribe(wire.MQTT_5, 1, shared))
    members[0].expect(wire.unsuback(wire.MQTT_5, 1, 0))
    members[1].disconnect()
    for number in range(4):
        publisher.publish(topic, b"%d" % number, 1)
    assert take_all([members[0], members[2]]) == [[], [b"0", b"1", b"2", b"3"]]


@keeps("5:4.8.2")
@pytest.mark.parametrize("qos", [0, 1])
def test_a_connected_member_gets_what_one_that_is_away_would_wait_for(
    peers: Peers, topic: str, qos: int
) -> None:
    """The choice is the server's; at QoS 0 a member that is away would get nothing at all."""
    away = peers.persistent().subscribe((f"$share/g/{topic}", 1))
    there = peers.connect().subscribe((f"$share/g/{topic}", 1))
    away.disconnect()
    publisher = peers.connect()
    sent = [b"%d" % number for number in range(6)]
    for payload in sent:
        publisher.publish(topic, payload, qos)
    assert take_all([there]) == [sent]


@keeps("5:4.8.2")
def test_messages_wait_when_all_members_are_away(peers: Peers, topic: str) -> None:
    away = peers.persistent().subscribe((f"$share/g/{topic}", 1))
    away.disconnect()
    peers.connect().publish(topic, b"x", 1)
    peers.persistent(client_id=away.client_id).expect_publish(topic, b"x", qos=1)


@keeps("5:4.8.2")
def test_shared_subscriptions_of_both_versions_are_one_group(peers: Peers, topic: str) -> None:
    members = [
        peers.connect(version).subscribe((f"$share/g/{topic}", 0))
        for version in (wire.MQTT_3_1_1, wire.MQTT_5)
    ]
    publisher = peers.connect()
    for _ in range(10):
        publisher.publish(topic, b"x", 1)
    heard = take_all(members)
    assert sum(map(len, heard)) == 10
    assert all(heard)
