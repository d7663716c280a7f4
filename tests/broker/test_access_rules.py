"""Access rules in the broker: who may publish, subscribe and receive, and when rules change."""

import pytest

from gateway.access.access import OPEN, AccessPolicy
from gateway.access.acl_file import parse
from gateway.access.topics import LOG
from gateway.broker import access
from gateway.broker.connecting.connection_info import ConnectionInfo
from gateway.mqtt.codec.packet_codec import encode
from gateway.mqtt.packets import (
    MQTT_3_1_1,
    MQTT_5,
    ConnAck,
    Connect,
    PubAck,
    Publish,
    PubRec,
    SubscriptionRequest,
    Will,
)
from gateway.mqtt.reason_codes import ReasonCode
from gateway.pieces import complete
from gateway.settings.broker import BrokerSettings
from tests.support.broker.broker_harness import Harness
from tests.support.broker.durable_broker import DurableHarness
from tests.support.broker.inline import Inline
from tests.support.broker.memory_client import MemoryClient
from tests.support.broker.rights import only

DENIED = ReasonCode.NOT_AUTHORIZED
NOBODY = ReasonCode.NO_MATCHING_SUBSCRIBERS
ACL = """\
user sensor
topic write s/#
topic read to/sensor
user viewer
topic read s/#
topic deny s/secret
user root
topic readwrite #
pattern read +/p2p/%c
pattern readwrite own/%c/#
"""
UPLINK = "$CONTROL/tidegate/uplink"


class Place:
    """A broker with one listener that has these rules; each client is there as some user."""

    def __init__(self, harness: Harness, acl: str = ACL) -> None:
        self.harness = harness
        self.policy = AccessPolicy(parse(acl), operators=["olga"])
        harness.broker.listeners = only(self.policy)
        complete(access.apply(harness.broker, [self.policy], 0.0))

    def connect(self, username: str, **fields: object) -> MemoryClient:
        fields = {"client_id": username, "info": ConnectionInfo(access=self.policy)} | fields
        return self.harness.connect(username=username, **fields)  # type: ignore[arg-type]  # by name

    def change(self, acl: str) -> None:
        self.policy.replace(parse(acl))
        complete(access.apply(self.harness.broker, [self.policy], 0.0))


@pytest.fixture
def place(harness: Harness) -> Place:
    return Place(harness)


def topics(client: MemoryClient) -> list[str]:
    """Return the topics of the messages that came since the last time."""
    packets = client.take()
    assert all(isinstance(packet, Publish) for packet in packets), packets
    return [packet.topic for packet in packets if isinstance(packet, Publish)]


def test_publishing(place: Place) -> None:
    sensor = place.connect("sensor")
    watcher = place.connect("root")
    watcher.subscribe("#")
    for _ in range(2):  # asked, then remembered
        sensor.send(
            Publish("s/1", b"", 1, packet_id=1),
            Publish("t/1", b"", 1, packet_id=2),
            Publish("t/2", b"", 2, packet_id=3),
            Publish("t/2", b""),
            Publish("own/sensor/1", b""),
            Publish("own/other/1", b""),
        )
        assert sensor.take() == [PubAck(1), PubAck(2, DENIED), PubRec(3, DENIED)]
    assert topics(watcher) == ["s/1", "own/sensor/1"] * 2
    assert place.harness.counters.count("tidegate/clients/not_authorized") == 8
    assert place.harness.broker.admissions.values()["decisions"] == 5


def test_mqtt_3_1_1_is_not_told(place: Place) -> None:
    sensor = place.connect("sensor", version=MQTT_3_1_1)
    watcher = place.connect("root")
    watcher.subscribe("#")
    sensor.send(Publish("t/1", b"", 1, packet_id=2), Publish("t/2", b""))
    assert sensor.take() == [PubAck(2)]
    assert not watcher.take()
    assert sensor.subscribe("s/+") == 0x80


def test_a_batch_is_refused_as_one(place: Place) -> None:
    sensor = place.connect("sensor")
    sensor.send(*(Publish("t/1", b"%d" % each, 1, packet_id=each) for each in range(1, 20)))
    assert sensor.take() == [PubAck(each, DENIED) for each in range(1, 20)]


@pytest.mark.parametrize("where", [None, "payload > 1"])
@pytest.mark.parametrize("prefix", ["", "$share/g/"])
def test_receiving(place: Place, prefix: str, where: str | None) -> None:
    viewer, root = place.connect("viewer"), place.connect("root")
    wanted = [SubscriptionRequest(prefix + each, 0) for each in ("#", "t/+", "s/secret", "s/+")]
    codes = viewer.subscribe_all(wanted, where=where).reason_codes
    assert codes == [0, DENIED, DENIED, 0]
    for topic in ("s/1", "s/secret", "t/1", "own/viewer/x", "own/root/x") * 2:
        root.send(Publish(topic, b"2"))
    expected = ["s/1", "own/viewer/x"] * 2
    assert sorted(set(topics(viewer))) == sorted(set(expected))
    assert place.harness.counters.count("tidegate/access/subscriptions") == 2


def test_who_may_read_gets_what_another_member_may_not(place: Place) -> None:
    viewer, root = place.connect("viewer"), place.connect("root")
    for client in (viewer, root):
        assert client.subscribe("$share/g/#") == 0
    publisher = place.connect("root", client_id="publisher")
    for _ in range(4):
        publisher.send(Publish("s/secret", b""))
    assert (topics(viewer), topics(root)) == ([], ["s/secret"] * 4)
    publisher.send(*(Publish(topic, b"") for topic in ("s/1", "s/secret") * 4))  # read together
    got = topics(viewer)
    assert set(got) == {"s/1"}
    assert sorted(got + topics(root)) == ["s/1"] * 4 + ["s/secret"] * 4


def test_others_have_their_turn_while_rules_change(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "AT_ONCE", 1)
    root, viewer = place.connect("root"), place.connect("viewer")
    for client in (root, viewer):
        client.subscribe("t/#")
    place.policy.replace(parse("user viewer\ntopic read t/#\n"))
    pieces = access.apply(place.harness.broker, [place.policy], 0.0)
    for expected in (None, None, "end"):
        place.harness.publish("t/1")  # its route is known with the rights of this moment
        assert next(pieces, "end") == expected
    for client in (root, viewer):
        client.take()
    place.harness.publish("t/1")
    assert (topics(root), topics(viewer)) == ([], ["t/1"])


def test_retained_messages(place: Place) -> None:
    root, viewer = place.connect("root"), place.connect("viewer")
    for topic in ("s/1", "s/secret", "t/1"):
        root.send(Publish(topic, b"x", retain=True))
    viewer.subscribe("#")
    assert topics(viewer) == ["s/1"]


def test_wills(place: Place) -> None:
    watcher = place.connect("root")
    watcher.subscribe("#")
    for topic, code in (("s/gone", ReasonCode.SUCCESS), ("t/gone", DENIED), (UPLINK, DENIED)):
        client = place.harness.open(info=ConnectionInfo(access=place.policy))
        client.send(Connect("sensor", username="sensor", will=Will(topic, b"x")))
        assert client.take_only(ConnAck).reason_code == code
        if code == ReasonCode.SUCCESS:
            client.drop()
    assert topics(watcher) == ["s/gone"]


def test_a_will_that_may_not_be_published_any_more(place: Place) -> None:
    watcher = place.connect("root")
    watcher.subscribe("#")
    sensor = place.connect("sensor", will=Will("s/gone", b"x"))
    place.change("user root\ntopic #\n")
    sensor.drop()
    assert not watcher.take()
    assert place.harness.counters.count("tidegate/access/wills") == 1


def test_peer_to_peer() -> None:
    place = Place(Harness(BrokerSettings(p2p=True)))
    root, viewer = place.connect("root"), place.connect("viewer")
    open_one = place.harness.connect("open", info=ConnectionInfo(access=OPEN))
    root.send(*(Publish(f"x/p2p/{to}", b"", 1, packet_id=1) for to in ("viewer", "open")))
    assert root.take() == [PubAck(1), PubAck(1)]
    viewer.send(Publish("x/p2p/root", b"", 1, packet_id=1))
    assert viewer.take() == [Publish("x/p2p/viewer", b"", 1, packet_id=1), PubAck(1, DENIED)]
    assert topics(open_one) == ["x/p2p/open"]
    place.change(ACL.replace("pattern read +/p2p/%c", ""))
    root.send(Publish("x/p2p/viewer", b"", 1, packet_id=1))
    assert root.take() == [PubAck(1, NOBODY)]


def test_commands_and_the_log(place: Place) -> None:
    control = Inline("$CONTROL")
    broker = place.harness.broker
    broker.subscribe_inline(control, ["$CONTROL/tidegate/#"])
    clients = {
        "stranger": place.harness.connect("1", info=ConnectionInfo()),
        "local": place.harness.connect("2", info=ConnectionInfo(local=True)),
        "sensor": place.connect("sensor", client_id="3"),
        "root": place.connect("root", client_id="4"),
        "olga": place.harness.connect(
            "5", username="olga", info=ConnectionInfo(username="olga", access=place.policy)
        ),
    }
    allowed = set()
    for name, client in clients.items():
        code = client.subscribe(LOG)
        shared = client.subscribe(f"$share/g/{LOG}")
        assert code == shared
        client.send(Publish(UPLINK, b"pause", 1, packet_id=9))
        (puback,) = client.take()
        assert (puback, code) in ((PubAck(9), 0), (PubAck(9, DENIED), DENIED)), name
        allowed |= {name} if code == 0 else set()
        client.subscribe("$SYS/#")
    assert allowed == {"local", "olga"}
    assert len(control.taken) == 2
    place.harness.publish(LOG, b"line", retain=True)
    assert {name for name, client in clients.items() if topics(client)} == allowed
    late = place.harness.connect("6", info=ConnectionInfo())
    late.subscribe("$SYS/#")
    assert not late.take()


def test_nobody_is_told_of_a_log_that_nobody_may_read(harness: Harness) -> None:
    harness.connect("c").subscribe("$SYS/#")
    assert not harness.broker.router.reaches(LOG)
    harness.connect("d", info=ConnectionInfo(local=True)).subscribe("$SYS/#")
    assert harness.broker.router.reaches(LOG)


def test_rules_that_change_hold_for_what_is_there(place: Place) -> None:
    root, viewer = place.connect("root"), place.connect("viewer")
    viewer.subscribe("#")
    root.send(Publish("s/1", b""), Publish("t/1", b""))
    assert topics(viewer) == ["s/1"]
    place.change("user root\ntopic #\nuser viewer\ntopic t/#\n")
    root.send(Publish("s/1", b""), Publish("t/1", b""))
    assert topics(viewer) == ["t/1"]
    viewer.send(Publish("t/1", b"", 1, packet_id=1), Publish("s/1", b"", 1, packet_id=2))
    assert viewer.take()[1:] == [PubAck(1), PubAck(2, DENIED)]


def test_what_waits_on_disk_is_asked_about_by_the_rules_of_the_next_start() -> None:
    harness = DurableHarness()
    viewer = Place(harness).connect("viewer", session_expiry=100)
    viewer.subscribe("s/#", qos=1)
    viewer.drop()
    for topic in ("s/1", "s/2"):
        harness.publish(topic, b"", 1)
    policy = AccessPolicy(parse("user viewer\ntopic read s/2\n"))
    harness.listeners = only(policy)
    harness.crash()
    complete(access.apply(harness.broker, [policy], 0.0))
    info = ConnectionInfo(access=policy)
    viewer = harness.connect(
        "viewer", username="viewer", info=info, session_expiry=100, clean_start=False
    )
    assert topics(viewer) == ["s/2"]


def first_piece(harness: Harness, client: MemoryClient, names: list[str]) -> int:
    """Send a message to each topic name in one read; return how many are handled before others."""
    broker = harness.broker
    before = broker.traffic.messages_received
    data = b"".join(encode(Publish(topic, b""), MQTT_5) for topic in names)
    assert broker.receive(client.client, data, harness.instant)
    first = broker.traffic.messages_received - before
    client.send()
    assert broker.traffic.messages_received - before == len(names)
    return first


def test_new_topics_beside_many_with_rights_of_their_own_are_not_one_piece(
    harness: Harness,
) -> None:
    place = Place(harness, "pattern read own/%c/#\npattern read all/#\nuser root\ntopic #\n")
    for number in range(600):
        place.connect("viewer", client_id=f"c{number}").subscribe("#")
    root = place.connect("root")
    assert 0 < first_piece(harness, root, [f"all/{number}" for number in range(30)]) < 10


def test_new_topics_of_one_with_many_rules_are_not_one_piece(harness: Harness) -> None:
    rules = "".join(f"topic write a/{number}/+\n" for number in range(900))
    place = Place(harness, f"user anna\n{rules}topic write z/#\n")
    anna = place.connect("anna")
    assert 0 < first_piece(harness, anna, [f"z/{number}" for number in range(200)]) < 40


def test_rights_that_are_remembered_have_a_bound(harness: Harness) -> None:
    admissions = harness.broker.admissions
    admissions.maximum_bytes = 20_000
    place = Place(harness, "pattern write shared\npattern write %c\n")
    for number in range(100):
        client = place.connect("u", client_id=f"c{number}")
        client.send(Publish("shared", b""))
        assert admissions.values()["bytes"] <= 20_000
    assert admissions.values()["decisions"] == 100
