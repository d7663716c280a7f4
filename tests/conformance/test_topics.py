"""Which topic filters match which topic names (MQTT 5, section 4.7)."""

import pytest

from tests.conformance.support import wire
from tests.conformance.support.peer import Peers
from tests.conformance.support.statements import keeps

RULE = ("5:4.7.1", "3.1.1:4.7.1")
CASE_AND_SPACE = ("5:4.7.3-4", "3.1.1:4.7.3-4")

MATCHES = [
    ("a", "a"),
    ("a/#", "a"),
    ("a/#", "a/"),
    ("a/#", "a/b"),
    ("a/#", "a/b/c"),
    ("a/+", "a/b"),
    ("a/+", "a/"),
    ("+/b", "a/b"),
    ("+/b", "/b"),
    ("+/+", "/a"),
    ("+/+", "a/"),
    ("+/+", "/"),
    ("/+", "/a"),
    ("+", "a"),
    ("#", "a"),
    ("#", "/"),
    ("#", "a/$b"),
    ("a/+/c", "a/b/c"),
    ("a/+/c", "a//c"),
    ("a/+/#", "a/b"),
    ("a/+/#", "a/b/c/d"),
    ("+/#", "a"),
    ("+/+/#", "a/b"),
    ("a//b", "a//b"),
    ("/", "/"),
    ("//", "//"),
    ("a b", "a b"),
    ("a/$b", "a/$b"),
    ("a/$b/#", "a/$b/c"),
    ("Ω/+", "Ω/ω"),
]
MISMATCHES = [
    ("a", "a/"),
    ("a", "/a"),
    ("a", "A"),
    ("a/", "a"),
    ("a/+", "a"),
    ("a/+", "a/b/c"),
    ("a/b", "a/b/c"),
    ("a/b", "a"),
    ("a/b/#", "a"),
    ("a/#", "ab"),
    ("a/#", "b"),
    ("+", "/a"),
    ("+", "a/b"),
    ("+", "a/"),
    ("+/b", "b"),
    ("/+", "a"),
    ("a//b", "a/b"),
    ("a/b", "a//b"),
    ("+/+/#", "a"),
    ("a b", "a  b"),
]


def below(root: str, topic: str) -> str:
    """Return the topic below a level that no other test has."""
    return f"{root}/{topic}"


@keeps(*RULE, "5:3.3.2-3", "3.1.1:3.3.2-3", *CASE_AND_SPACE)
def test_matches(peers: Peers, version: int) -> None:
    """Each pair on levels of its own, with a subscription and with what is retained."""
    peer = peers.connect(version)
    for topic_filter, topic_name in MATCHES:
        root = peers.name()
        peer.subscribe((below(root, topic_filter), 0))
        peer.publish_unanswered(below(root, topic_name), b"x", retain=True)
        peer.expect_publish(below(root, topic_name), b"x")
        later = peers.connect(version).subscribe((below(root, topic_filter), 0))
        later.expect_publish(below(root, topic_name), b"x", retain=True)
        later.close()


@keeps(*RULE, "5:3.3.2-3", "3.1.1:3.3.2-3", *CASE_AND_SPACE)
def test_mismatches(peers: Peers, version: int) -> None:
    peer = peers.connect(version)
    for topic_filter, topic_name in MISMATCHES:
        root = peers.name()
        peer.subscribe((below(root, topic_filter), 0))
        peer.publish(below(root, topic_name), b"x", 1, retain=True)
        later = peers.connect(version).subscribe((below(root, topic_filter), 0))
        later.expect_nothing()
        later.close()
    peer.expect_nothing()


@keeps(*RULE)
@pytest.mark.parametrize("topic_filter", ["#", "+/#", "+/+", "+/topic"])
def test_wildcards_at_the_first_level(peers: Peers, topic: str, topic_filter: str) -> None:
    peer = peers.connect().subscribe((topic_filter, wire.NO_RETAINED))
    peer.publish_unanswered(topic, b"x")
    peer.expect_publish(topic, b"x")


@keeps("5:4.7.2-1", "3.1.1:4.7.2-1")
def test_system_topics_can_be_subscribed_to(peers: Peers, version: int) -> None:
    peer = peers.connect(version).subscribe(("$SYS/broker/version", 0))
    raw = peer.receive()
    assert raw[0] == wire.PUBLISH | 1
    assert b"$SYS/broker/version" in raw


@keeps("5:3.8.4-5", "3.1.1:3.8.4-4")
def test_a_client_with_a_thousand_subscriptions(peers: Peers, version: int, topic: str) -> None:
    filters = [f"{topic}/{number}" for number in range(1_000)]
    peer = peers.connect(version).subscribe(*((each, 0) for each in filters))
    for number in (0, 499, 999):
        peer.publish_unanswered(f"{topic}/{number}", b"x")
        peer.expect_publish(f"{topic}/{number}", b"x")
    peer.publish(f"{topic}/1000", b"x", 1)
    peer.expect_nothing()
