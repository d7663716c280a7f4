"""Messages of several topics in one read go together where they go the same way."""

from dataclasses import replace

import pytest

from gateway.access.access import AccessPolicy
from gateway.access.acl_file import parse
from gateway.broker import access
from gateway.broker.broker import MAXIMUM_COST
from gateway.broker.connecting.connection_info import ConnectionInfo
from gateway.broker.publishing.publish import MAXIMUM_SKIPPED
from gateway.mqtt.codec.packet_codec import encode
from gateway.mqtt.connection import NO_LIMIT, Connection
from gateway.mqtt.packets import MQTT_3_1_1, MQTT_5, Connect, PubAck, Publish, SubscriptionRequest
from gateway.mqtt.properties import Properties
from gateway.mqtt.reason_codes import ReasonCode
from gateway.pieces import complete
from gateway.settings.broker import BrokerSettings
from gateway.settings.storage import DurabilityRule
from tests.support.broker.broker_harness import UNSHARED, Harness
from tests.support.broker.durable_broker import DurableHarness, away
from tests.support.broker.publishing import codes, published
from tests.support.broker.rights import only
from tests.support.table import table

NOT_AUTHORIZED = ReasonCode.NOT_AUTHORIZED
TOPICS = ["s/1", "s/2", "s/a/longer/one", "s/1", "s/2", "s/" + "x" * 150]


def messages(
    topics: list[str], qos: int = 0, properties: Properties | None = None
) -> list[Publish]:
    return [
        Publish(
            topic,
            b"%d" % number,
            qos,
            packet_id=number if qos else 0,
            properties=properties or Properties(),
        )
        for number, topic in enumerate(topics, start=1)
    ]


def spans(harness: Harness, name: str) -> list[int]:
    """Return how many messages each span has that waits for a session."""
    return [span.count for span in harness.session(name).queue]


@table("properties", [None, Properties(content_type="t")])
@table("qos", [0, 1, 2])
@table("version", [MQTT_3_1_1, MQTT_5])
def test_everybody_gets_each_with_its_topic(
    version: int, qos: int, properties: Properties | None
) -> None:
    harness = Harness()
    receivers = [
        harness.connect("same", version),
        harness.connect("other", MQTT_3_1_1 + MQTT_5 - version),
        harness.connect("lower", version),
        harness.connect("identified", MQTT_5),
    ]
    for receiver, most in zip(receivers[:3], (2, 2, 0), strict=True):
        receiver.subscribe("s/#", most)
    receivers[3].subscribe_all([SubscriptionRequest("s/#", 2)], identifier=7)
    publisher = harness.connect("publisher", version)
    sent = messages(TOPICS, qos, properties if version == MQTT_5 else None)
    publisher.send(*sent)
    for receiver in receivers:
        found = [(each.topic, each.payload) for each in published(receiver)]
        assert found == [(each.topic, each.payload) for each in sent]
    admissions = harness.broker.admissions
    assert (admissions.hits, admissions.misses) == (2, 4)


def test_who_has_aliases_gets_each_with_its_topic(harness: Harness) -> None:
    properties = Properties(topic_alias_maximum=10)
    receiver = harness.open()
    receiver.send(Connect("c", MQTT_5, properties=properties))
    receiver.subscribe("#")
    harness.connect("publisher").send(*messages(TOPICS * 2))
    found = published(receiver)
    assert [each.payload for each in found] == [b"%d" % number for number in range(1, 13)]
    names: dict[int | None, str] = {}
    for each in found:
        names[each.properties.topic_alias] = each.topic or names[each.properties.topic_alias]
        assert names[each.properties.topic_alias] in TOPICS


def test_they_are_one_row_and_come_back_from_the_disk() -> None:
    harness = DurableHarness()
    away(harness, "s/#", "away", 1)
    harness.connect("publisher").send(*messages(TOPICS, 1))
    assert spans(harness, "away") == [6]
    rows = harness.disk.connection.execute("SELECT count(*) FROM message").fetchone()
    assert rows[0] == 1
    harness.crash()
    client = harness.persistent("away", receive_maximum=4)
    found = published(client)
    client.send(*(PubAck(each.packet_id) for each in found))
    found += published(client)
    assert [each.topic for each in found] == TOPICS


class Scene:
    """A session that is away and owed everything, and what may keep messages apart."""

    def __init__(self, settings: BrokerSettings, acl: str = "", others: str = "") -> None:
        self.harness = Harness(settings)
        away(self.harness, "#", "away", 1)
        fields = {}
        if acl:
            policy = AccessPolicy(parse(acl))
            self.harness.broker.listeners = only(policy)
            complete(access.apply(self.harness.broker, [policy], 0.0))
            fields = {"username": "u", "info": ConnectionInfo(access=policy)}
        if others:
            request = [SubscriptionRequest(others.partition(" ")[0], 1)]
            self.harness.connect("other").subscribe_all(request, others.partition(" ")[2] or None)
        self.publisher = self.harness.connect("publisher", **fields)  # type: ignore[arg-type]  # by name


USUAL = BrokerSettings()
MEMORY = BrokerSettings(durability=(DurabilityRule("memory", topic="s/1"),))
READ_ALL = "user u\ntopic read #\n"
KEPT_TOGETHER = {
    "nothing stands against it": Scene(USUAL),
    "all may be written": Scene(USUAL, READ_ALL + "topic write s/#\n"),
    "a filter is evaluated for each": Scene(USUAL, others="# qos = 1"),
}
KEPT_APART = {
    "another route": Scene(USUAL, others="s/1"),
    "another durability class": Scene(MEMORY),
}


@table("scene", KEPT_TOGETHER.values(), ids=KEPT_TOGETHER)
def test_one_span_has_what_goes_the_same_way(scene: Scene) -> None:
    scene.publisher.send(*messages(["s/1", "s/2", "s/3"], 1))
    assert spans(scene.harness, "away") == [3]


@table("qos", [0, 1, 2])
def test_a_filter_sees_the_topic_and_payload_of_each(harness: Harness, qos: int) -> None:
    everything, some = harness.connect("everything"), harness.connect("some")
    everything.subscribe("#", 2)
    some.subscribe_all([SubscriptionRequest("s/#", 2)], "topic = 's/2' OR payload > 4")
    publisher = harness.connect("publisher")
    publisher.send(*messages(TOPICS, qos))
    assert [each.topic for each in published(everything)] == TOPICS
    found = [(each.topic, each.payload) for each in published(some)]
    assert found == [("s/2", b"2"), ("s/2", b"5"), (TOPICS[5], b"6")]


@table("scene", KEPT_APART.values(), ids=KEPT_APART)
def test_what_goes_another_way_has_another_span(scene: Scene) -> None:
    scene.publisher.send(*messages(["s/1", "s/2", "s/1", "s/2"], 1))
    assert spans(scene.harness, "away") == [1, 1, 1, 1]


def test_what_may_not_be_written_is_refused_alone() -> None:
    scene = Scene(USUAL, READ_ALL + "topic write s/2\n")
    scene.publisher.send(*messages(["s/1", "s/1", "s/2", "s/3"], 1))
    assert codes(scene.publisher) == [NOT_AUTHORIZED, NOT_AUTHORIZED, 0, NOT_AUTHORIZED]
    assert spans(scene.harness, "away") == [1]


SPECIAL = {
    "a topic of the gateway's": "$own/x",
    "peer to peer": "s/p2p/away",
    "a wildcard": "s/+",
    "no text": "\0",
}


@pytest.mark.parametrize("topic", SPECIAL.values(), ids=SPECIAL)
def test_special_topics_stay_by_themselves(topic: str) -> None:
    scene = Scene(BrokerSettings(p2p=True))
    scene.publisher.send(*messages(["s/1", "s/2", topic, "s/3"], 1))
    assert spans(scene.harness, "away")[0] == 2
    admissions = scene.harness.broker.admissions
    assert not scene.publisher.closed() or admissions.hits + admissions.misses == 3


def test_retained_messages_of_one_read_are_all_kept(harness: Harness) -> None:
    away(harness, "s/#", "away", 1)
    publisher = harness.connect("publisher")
    sent = [replace(each, retain=True) for each in messages(TOPICS, 1)]
    publisher.send(*sent)
    assert spans(harness, "away") == [6]
    last = {each.topic: each.payload for each in sent}
    reader = harness.connect("reader")
    reader.subscribe("#")
    assert {each.topic: each.payload for each in published(reader)} == last


@pytest.mark.parametrize("qos", [0, 1])
def test_retained_messages_without_room_are_refused_one_by_one(qos: int) -> None:
    harness = Harness(UNSHARED)
    harness.broker.retained.maximum_messages = 2
    publisher = harness.connect("publisher")
    sent = [replace(each, retain=True) for each in messages(["a", "b", "c", "a"], qos)]
    publisher.send(*sent)
    none = ReasonCode.NO_MATCHING_SUBSCRIBERS
    expected = [none, none, ReasonCode.QUOTA_EXCEEDED, none] if qos else []
    assert codes(publisher) == expected
    assert harness.counters.count("tidegate/retained/rejected") == 1
    reader = harness.connect("reader")
    reader.subscribe("#")
    assert {each.topic: each.payload for each in published(reader)} == {"a": b"4", "b": b"2"}


@pytest.mark.uncovered
def test_topics_go_by_themselves_while_retained_messages_are_replayed(harness: Harness) -> None:
    away(harness, "s/#", "away", 1)
    publisher = harness.connect("publisher")
    publisher.send(*(Publish(f"s/{number}", b"r", retain=True) for number in range(3_000)))
    reader = harness.connect("reader")
    reader.subscribe("s/#", 1)
    assert harness.broker.replays.count
    before = len(spans(harness, "away"))
    publisher.send(*messages(["s/1", "s/2", "s/1"], 1))
    assert spans(harness, "away")[before:] == [1, 1, 1]


@pytest.mark.uncovered
@pytest.mark.parametrize("retain", [False, True])
def test_others_may_have_their_turn_behind_new_topics_and_retained_messages(
    harness: Harness, retain: bool
) -> None:
    publisher = harness.connect("publisher")
    one_read = b"".join(
        encode(Publish(f"s/{number}", b"r", retain=retain), MQTT_5) for number in range(3_000)
    )
    received = harness.broker.traffic
    client, turns = publisher.client, []
    while harness.broker.receive(client, one_read, harness.instant):
        one_read = b""
        turns.append(received.messages_received)
    assert received.messages_received == 3_000
    steps = [after - before for before, after in zip([0, *turns], turns, strict=False)]
    assert 5 <= len(steps) <= 12
    assert max(steps) <= 2 * MAXIMUM_COST


def test_who_never_has_any_is_looked_at_less_and_less_often() -> None:
    scene = Scene(USUAL, others="s/1")
    scene.publisher.send(*messages(["s/1", "s/2"] * 40))
    client = scene.publisher.client
    assert client.skips == MAXIMUM_SKIPPED
    scene.publisher.send(*messages(["s/2", "s/3"] * 20, 1))
    assert client.skips == 0
    assert spans(scene.harness, "away")[-1] > 20


WHOLE = encode(Publish("s/2", b"x" * 9), MQTT_3_1_1)
BEHIND = {
    "whole": (WHOLE, b"\0\x03s/2"),
    "long": (encode(Publish("s/2", b"x" * 200), MQTT_3_1_1), b"\0\x03s/2"),
    "no topic yet": (WHOLE[:4], b""),
    "half of its topic": (b"\x30\x20\0\x10topic", b""),
    "a length without end": (b"\x30" + b"\xff" * 9, b""),
}


@table(("data", "name"), BEHIND.values(), ids=BEHIND)
def test_the_topic_name_behind_is_seen_once_it_is_whole(data: bytes, name: bytes) -> None:
    connection = Connection(NO_LIMIT)
    connection.version = MQTT_3_1_1
    connection.framer.feed(encode(Publish("s/1", b""), MQTT_3_1_1) + data)
    assert connection.framer.next_frame(connection.version)
    connection.publication()
    assert connection.next_is_publish
    assert connection.next_topic_name() == name
