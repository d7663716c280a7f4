"""What a session is owed and its connection may not read now: held back, never lost or given."""

import pytest

from gateway.access.access import AccessPolicy
from gateway.access.acl_file import parse
from gateway.access.listeners import ListenerRights, Listeners
from gateway.broker import access
from gateway.broker.connecting.connection_info import ConnectionInfo
from gateway.mqtt.packets import MQTT_5, PubAck, PubComp, Publish, PubRec, PubRel
from gateway.mqtt.reason_codes import ReasonCode
from gateway.pieces import complete
from gateway.session.queue import delivery_queue
from gateway.session.queue.memory import HEAD_MESSAGES
from gateway.settings.broker import BrokerSettings
from gateway.settings.when_full import WhenFull
from tests.support.broker.broker_harness import Harness
from tests.support.broker.durable_broker import DurableHarness
from tests.support.broker.memory_client import MemoryClient

WIDE = "user anna\ntopic readwrite #\n"
NARROW = "user anna\ntopic readwrite open/#\n"


class Place:
    """A broker with a wide listener and a narrow one; anna's session is at home at the first."""

    def __init__(self, harness: Harness, home: str = "wide") -> None:
        self.harness = harness
        self.home = home
        self.policies = {"wide": AccessPolicy(parse(WIDE)), "narrow": AccessPolicy(parse(NARROW))}
        self.begin()

    def begin(self) -> None:
        broker = self.harness.broker
        broker.listeners = Listeners(
            {name: ListenerRights(policy) for name, policy in self.policies.items()}
        )
        self.apply()

    def change(self, acl: str, listener: str = "wide") -> None:
        self.policies[listener].replace(parse(acl))
        self.apply()

    def apply(self) -> None:
        broker, now = self.harness.broker, self.harness.now
        complete(access.apply(broker, self.policies.values(), now))
        self.harness.settle()

    def connect(
        self, listener: str | None = None, client_id: str = "c", **fields: object
    ) -> MemoryClient:
        listener = listener or self.home
        info = ConnectionInfo(access=self.policies[listener], listener=listener)
        fields = {"session_expiry": 3600, "clean_start": False} | fields
        return self.harness.connect(client_id, username="anna", info=info, **fields)  # type: ignore[arg-type]  # by name

    def publish(self, *topics: str, qos: int = 1) -> None:
        for topic in topics:
            self.harness.publish(topic, b"x", qos)

    def count(self, name: str) -> int:
        return self.harness.counters.count(f"tidegate/access/{name}")


@pytest.fixture(params=["memory", "disk"])
def place(request: pytest.FixtureRequest) -> Place:
    return Place(Harness() if request.param == "memory" else DurableHarness())


def topics(client: MemoryClient) -> list[str]:
    """Return the topics of what came, and acknowledge it, until no more comes."""
    found: list[str] = []
    while came := client.take():
        for packet in came:
            if isinstance(packet, Publish):
                found.append(packet.topic)
                if packet.qos:
                    client.send((PubAck if packet.qos == 1 else PubRec)(packet.packet_id))
            elif isinstance(packet, PubRel):
                client.send(PubComp(packet.packet_id))
    return found


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_connection_with_fewer_rights_gets_what_both_allow(place: Place, qos: int) -> None:
    """The route was found before the second connection came."""
    wide = place.connect()
    wide.subscribe("#", qos)
    place.publish("secret", "open/1", qos=qos)
    assert topics(wide) == ["secret", "open/1"]
    narrow = place.connect("narrow")
    place.publish("secret", "open/1", "secret", "open/2", qos=qos)
    assert topics(narrow) == ["open/1", "open/2"]
    place.publish("open/3", qos=qos)
    assert topics(narrow) == ["open/3"]
    assert place.count("held_back" if qos else "withheld") == 2
    assert place.harness.broker.queue_memory.held_back == (2 if qos else 0)
    assert place.harness.broker.sessions["c"].queue.held_back == (2 if qos else 0)
    wide = place.connect()
    assert topics(wide) == (["secret", "secret"] if qos else [])
    assert not place.harness.broker.queue_memory.held_back
    place.publish("secret", qos=qos)
    assert topics(wide) == ["secret"]
    assert not place.harness.session("c").unchecked


@pytest.mark.parametrize("qos", [1, 2])
def test_what_waited_is_kept_for_a_connection_that_may_read_it(place: Place, qos: int) -> None:
    place.connect().subscribe("#", qos)
    place.harness.clients[-1].drop()
    place.publish("secret", "open/1", "open/2", "secret", "open/3", qos=qos)
    narrow = place.connect("narrow")
    assert topics(narrow) == ["open/1", "open/2", "open/3"]
    narrow.drop()
    place.publish("open/4", qos=qos)
    narrow = place.connect("narrow")
    assert topics(narrow) == ["open/4"]
    assert topics(place.connect()) == ["secret", "secret"]


def test_messages_that_came_together_are_told_apart(place: Place) -> None:
    place.connect().subscribe("#", 1)
    place.harness.clients[-1].drop()
    writer = place.connect(client_id="writer")
    names = ("secret", "open/1", "secret", "open/2", "open/2", "secret")
    numbered = enumerate(names, start=1)
    writer.send(*(Publish(topic, b"x", 1, packet_id=number) for number, topic in numbered))
    assert topics(place.connect("narrow")) == ["open/1", "open/2", "open/2"]
    assert topics(place.connect()) == ["secret", "secret", "secret"]


@pytest.mark.parametrize("qos", [1, 2])
@pytest.mark.parametrize("released", [False, True])
def test_what_was_not_acknowledged_keeps_its_packet_identifier(
    place: Place, *, qos: int, released: bool
) -> None:
    wide = place.connect()
    wide.subscribe("#", qos)
    place.publish("secret", "open/1", "secret", qos=qos)
    first = {each.packet_id: each.topic for each in wide.take() if isinstance(each, Publish)}
    assert first == {1: "secret", 2: "open/1", 3: "secret"}
    if released:
        wide.send(PubRec(1) if qos == 2 else PubAck(1))
        wide.take()
    wide.drop()
    narrow = place.connect("narrow", receive_maximum=2)
    came = narrow.take()
    released_here = [PubRel(1)] if released and qos == 2 else []
    assert [each for each in came if not isinstance(each, Publish)] == released_here
    again = [each for each in came if isinstance(each, Publish)]
    assert [(each.packet_id, each.topic, each.dup) for each in again] == [(2, "open/1", True)]
    assert place.count("held_back") == 2 - released
    narrow.send(PubRec(2) if qos == 2 else PubAck(2))
    narrow.take()
    if qos == 2:
        narrow.send(PubComp(2))
        if released:
            narrow.send(PubComp(1))
    place.publish("open/2", "open/3", "open/4", qos=qos)
    others = [each for each in narrow.take() if isinstance(each, Publish)]
    assert [each.topic for each in others] == ["open/2", "open/3"]  # as many as it takes
    assert not {each.packet_id for each in others} & {3, *([] if released else [1])}
    narrow.drop()
    came = place.connect().take()
    again = [each for each in came if isinstance(each, Publish) and each.topic == "secret"]
    assert [each.packet_id for each in again] == ([3] if released else [1, 3])
    assert all(each.dup for each in again)


def test_who_has_had_a_message_may_acknowledge_it_anywhere(place: Place) -> None:
    wide = place.connect()
    wide.subscribe("#", 1)
    place.publish("secret", "secret", "open/1")
    wide.drop()
    narrow = place.connect("narrow", receive_maximum=1)
    narrow.send(PubAck(1))
    narrow.take()
    narrow.send(PubAck(3))
    place.publish("open/2", "open/3")
    assert len(narrow.take()) == 1
    wide = place.connect()
    assert topics(wide) == ["secret", "open/2", "open/3"]
    assert not place.harness.session("c").inflight


def test_rules_that_shrink_and_grow_again_lose_nothing(place: Place) -> None:
    place.connect().subscribe("#", 1)
    place.harness.clients[-1].drop()
    place.publish("secret", "open/1")
    place.change("")
    client = place.connect()
    assert topics(client) == []
    place.change(NARROW)
    assert topics(client) == ["open/1"]
    place.publish("secret", "open/2")  # the first is not for its owner now
    assert topics(client) == ["open/2"]
    place.change(WIDE)
    assert topics(client) == ["secret"]


def test_rules_that_shrink_meet_what_was_sent_and_what_waits(place: Place) -> None:
    client = place.connect(receive_maximum=1)
    client.subscribe("#", 1)
    place.publish("secret", "secret", "open/1", "open/2")
    assert [each.topic for each in client.take() if isinstance(each, Publish)] == ["secret"]
    place.change(NARROW)
    client.send(PubAck(1))  # which it has had
    assert topics(client) == ["open/1", "open/2"]
    client.drop()
    client = place.connect()
    assert topics(client) == []
    place.change(WIDE)
    assert topics(client) == ["secret"]


def test_what_is_to_be_resent_waits_for_the_rules(place: Place) -> None:
    client = place.connect()
    client.subscribe("#", 1)
    place.publish("secret", "open/1")
    client.drop()
    place.change("")
    client = place.connect()
    assert not client.take()
    place.change(WIDE)
    came = [each for each in client.take() if isinstance(each, Publish)]
    assert [(each.packet_id, each.topic, each.dup) for each in came] == [
        (1, "secret", True),
        (2, "open/1", True),
    ]


def test_a_restart_in_between_changes_nothing() -> None:
    harness = DurableHarness()
    place = Place(harness)
    client = place.connect()
    client.subscribe("#", 1)
    place.publish("secret", "open/1")
    client.take()
    client.drop()
    place.publish("secret", "open/2")
    harness.listeners = harness.broker.listeners
    for _ in range(2):
        harness.crash()
        place.apply()
        narrow = place.connect("narrow")
        topics(narrow)
        assert place.harness.session("c").home.listener == "wide"
    harness.crash()
    place.apply()
    assert topics(place.connect()) == ["secret", "secret"]


def test_what_is_held_back_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery_queue, "HELD_BACK_MESSAGES", 3)
    place = Place(Harness())
    client = place.connect()
    client.subscribe("#", 1)
    client.drop()
    place.publish(*["secret"] * 3, "open/1", "secret", "open/2")
    narrow = place.connect("narrow")
    assert topics(narrow) == ["open/1"]  # the next one waits, and what is behind it
    assert topics(place.connect()) == ["secret"] * 4 + ["open/2"]


@pytest.mark.parametrize("together", [False, True])
def test_the_oldest_give_way_where_that_is_the_policy(*, together: bool) -> None:
    settings = BrokerSettings(maximum_queued_messages=3, queue_when_full=WhenFull.DROP_OLDEST)
    place = Place(Harness(settings))
    client = place.connect()
    client.subscribe("#", 1)
    client.drop()
    writer = place.connect(client_id="writer")
    packets = [Publish("secret", b"%d" % each, 1, packet_id=each) for each in (1, 2, 3)]
    for sent in [packets] if together else [[each] for each in packets]:
        writer.send(*sent)
    narrow = place.connect("narrow")
    writer.send(Publish("open/1", b"4", 1, packet_id=4))
    assert topics(narrow) == ["open/1"]
    writer.send(Publish("secret", b"5", 1, packet_id=5))
    assert not narrow.take()
    came = [each for each in place.connect().take() if isinstance(each, Publish)]
    assert [each.payload for each in came] == [b"2", b"3", b"5"]


def test_what_expires_while_it_is_held_back_is_gone(place: Place) -> None:
    place.connect().subscribe("#", 1)
    place.harness.clients[-1].drop()
    place.harness.publish("secret", b"x", 1, message_expiry=5)
    place.publish("secret")
    narrow = place.connect("narrow")
    assert topics(narrow) == []
    place.harness.pass_time(60)
    assert place.harness.broker.queue_memory.held_back == 1
    assert topics(place.connect()) == ["secret"]


def test_a_session_that_ends_gives_up_what_it_holds_back(place: Place) -> None:
    place.connect().subscribe("#", 1)
    place.harness.clients[-1].drop()
    place.publish("secret")
    assert topics(place.connect("narrow")) == []
    place.connect(clean_start=True)
    memory = place.harness.broker.queue_memory
    assert (memory.held_back, memory.deliveries, memory.bytes) == (0, 0, 0)


def test_a_subscription_needs_both_rights(place: Place) -> None:
    assert place.connect().subscribe("secret", 1) == 1
    narrow = place.connect("narrow")
    assert narrow.subscribe("secret", 1) == ReasonCode.NOT_AUTHORIZED
    assert narrow.subscribe("open/1", 1) == 1
    other = Place(Harness(), "narrow")
    other.connect()
    wide = other.connect("wide")
    assert wide.subscribe("secret", 1) == ReasonCode.NOT_AUTHORIZED


def test_publishing_goes_by_the_connection(place: Place) -> None:
    place.connect()
    narrow = place.connect("narrow")
    narrow.send(Publish("secret", b"", 1, packet_id=1), Publish("open/1", b"", 1, packet_id=2))
    codes = [each.reason_code for each in narrow.take() if isinstance(each, PubAck)]
    assert codes == [ReasonCode.NOT_AUTHORIZED, ReasonCode.NO_MATCHING_SUBSCRIBERS]


def test_retained_messages_peer_to_peer_and_shared_subscriptions() -> None:
    harness = Harness(BrokerSettings(p2p=True))
    place = Place(harness)
    wide = place.connect()
    wide.subscribe("open/p2p/+", 1)
    narrow = place.connect("narrow")
    harness.publish("secret", b"x", 1, retain=True)
    harness.publish("open/1", b"x", 1, retain=True)
    harness.publish("secret/p2p/c", b"x", 1)
    assert topics(narrow) == []
    narrow.subscribe("#", 1)
    assert topics(narrow) == ["open/1"]
    assert topics(place.connect())[0] == "secret/p2p/c"
    other = place.connect(client_id="other")
    for client in (other, place.connect("narrow")):
        client.subscribe("$share/g/news/#", 1)
    place.publish(*["news/1"] * 4)
    assert topics(other) == ["news/1"] * 4  # to whom they can be sent now
    other.drop()
    place.publish(*["news/1"] * 2)
    place.connect(client_id="other")
    assert place.count("held_back") > 0


def test_a_busy_turn_sends_it_when_the_connection_is_written_to(harness: Harness) -> None:
    place = Place(harness)
    place.connect().subscribe("#", 1)
    narrow = place.connect("narrow")
    traffic = harness.broker.traffic
    traffic.bytes_sent = traffic.queue_at
    place.publish("open/1", "secret")
    assert topics(narrow) == ["open/1"]


def test_a_busy_turn_gives_a_connection_more_when_it_is_written_to(harness: Harness) -> None:
    reader, publisher = harness.connect("r"), harness.connect("p")
    reader.subscribe("t")
    traffic = harness.broker.traffic
    traffic.bytes_sent = traffic.queue_at
    publisher.send(Publish("t", b"1"))
    assert [each.payload for each in reader.take()] == [b"1"]  # type: ignore[union-attr]  # a publication


def test_a_session_that_ends_with_its_connection_is_at_home_there(harness: Harness) -> None:
    """A session that ends with its connection is its listener's alone."""
    place = Place(harness)
    wide = place.connect(session_expiry=0, version=MQTT_5)
    wide.subscribe("#")
    place.publish("secret")
    assert topics(wide) == ["secret"]
    narrow = place.connect("narrow", session_expiry=0)
    narrow.subscribe("#")
    place.publish("secret", "open/1")
    assert topics(narrow) == ["open/1"]
    assert not harness.session("c").unchecked


@pytest.mark.uncovered
def test_what_is_on_disk_alone_is_told_apart_page_by_page() -> None:
    place = Place(DurableHarness())
    place.connect().subscribe("#", 1)
    place.harness.clients[-1].drop()
    count = 2 * HEAD_MESSAGES + 100
    for number in range(count):
        place.harness.publish("secret" if number % 2 else "open/1", b"%d" % number, 1)
    assert place.harness.session("c").queue.paged
    for listener, first in (("narrow", 0), ("narrow", count), ("wide", 1)):
        came: list[bytes] = []
        client = place.connect(listener)
        while packets := [each for each in client.take() if isinstance(each, Publish)]:
            came += [each.payload for each in packets]
            client.send(*(PubAck(each.packet_id) for each in packets))
        assert came == [b"%d" % number for number in range(first, count, 2)]
    assert not place.harness.session("c").queue.messages


def test_a_shared_subscription_prefers_who_can_be_sent_it(harness: Harness) -> None:
    place = Place(harness)
    for name in ("c", "other"):
        place.connect(client_id=name).subscribe("$share/g/news/#", 1)
    narrow = place.connect("narrow")
    place.publish(*["news/1"] * 4)
    (other,) = [each for each in harness.clients if each is not narrow and not each.closed()]
    assert topics(other) == ["news/1"] * 4
    other.drop()
    place.publish("news/1")
    assert not topics(narrow)
    assert topics(place.connect()) + topics(place.connect(client_id="other")) == ["news/1"]


def test_rules_that_change_leave_alone_what_this_connection_was_sent(place: Place) -> None:
    wide = place.connect()
    wide.subscribe("#", 1)
    place.publish("secret")
    wide.drop()
    narrow = place.connect("narrow")
    place.publish("open/1")
    assert len(narrow.take()) == 1  # which it has not acknowledged
    place.change(WIDE, "narrow")
    came = [each for each in narrow.take() if isinstance(each, Publish)]
    assert [(each.topic, each.dup) for each in came] == [("secret", True)]
