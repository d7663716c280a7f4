import pytest

from gateway.access.access import EVERYTHING
from gateway.broker.client_classes import DurabilityClasses
from gateway.broker.publishing.topic_admissions import LARGEST, TopicAdmission, TopicAdmissions
from gateway.counters import Counters
from gateway.mqtt.codec.fields import write_string
from gateway.mqtt.errors import MqttError
from gateway.mqtt.reason_codes import ReasonCode
from gateway.mqtt.topics import TopicLimits
from gateway.routing.budget import Budget
from gateway.routing.route import NOWHERE, Route
from gateway.routing.router import Router
from gateway.routing.subscriptions.subscription import Subscription
from gateway.session.session import Session
from gateway.settings.broker import BrokerSettings
from gateway.settings.storage import DurabilityRule
from tests.support.broker.broker_harness import Harness
from tests.support.broker.inline import Inline
from tests.support.broker.publishing import batch
from tests.support.table import table

ROUTE = Route(NOWHERE).size
"""Bytes of the route that all topics have to which nobody subscribes."""

MEMORY = DurabilityRule("memory", topic="memory/#")


class Scene:
    """A router, and the admissions of what is published."""

    def __init__(self, maximum_bytes: int = 1_000_000, *, p2p: bool = False) -> None:
        self.router = Router(Budget())
        self.session = Session("c", Counters())
        self.admissions = TopicAdmissions(
            self.router,
            TopicLimits(4, 100),
            DurabilityClasses([MEMORY], "commit"),
            p2p=p2p,
            maximum_bytes=maximum_bytes,
        )

    def find(self, topic: str) -> TopicAdmission:
        return self.admissions.find(write_string(topic))

    def figures(self) -> tuple[int, int]:
        return self.admissions.hits, self.admissions.misses

    def subscribe(self, topic_filter: str) -> int:
        return self.router.add(Subscription(self.session, topic_filter, 1))


@pytest.fixture
def scene() -> Scene:
    return Scene()


def room_for(count: int, topic: str) -> int:
    """Return the bytes of so many topics like this one, which nobody subscribes to."""
    return count * Scene().find(topic).size + ROUTE


def test_an_admission_is_made_once(scene: Scene) -> None:
    assert scene.admissions.values()["hit_rate"] == 0
    assert scene.find("a") is scene.find("a") is scene.find("a")
    first = scene.find("b")
    assert scene.admissions.values() == {
        "hits": 2,
        "misses": 2,
        "hit_rate": 50,
        "topics": 2,
        "decisions": 0,
        "bytes": scene.find("a").size + first.size + ROUTE,
    }


def test_it_says_where_messages_go(scene: Scene) -> None:
    inline = Inline()
    scene.router.add(Subscription(inline, "#", 2))
    scene.subscribe("a")
    found = scene.find("a")
    assert [each.subscriber for each in found.route.inline] == [inline]
    assert [each.subscriber for each in found.route.sessions] == [scene.session]
    assert (found.topic, found.refusal, found.addressee) == ("a", None, None)


# --- bounds ---------------------------------------------------------------------------------


def test_what_is_known_is_bounded_in_bytes() -> None:
    scene = Scene(room_for(10, "t/00"))
    for number in range(100):
        scene.find(f"t/{number:02}")
        values = scene.admissions.values()
        assert values["bytes"] == room_for(values["topics"], "t/00")
        assert values["topics"] == number + 1 if number < 10 else 9 <= values["topics"] <= 10


def test_what_is_asked_for_again_is_not_forgotten() -> None:
    scene = Scene(room_for(10, "t/00"))
    kept = scene.find("kept")
    for number in range(100):
        scene.find(f"t/{number:02}")
        assert scene.find("kept") is kept
    hits, misses = scene.figures()
    assert (hits, misses) == (100, 101)
    scene.find("t/00")
    assert scene.figures() == (hits, misses + 1)


def test_as_many_topics_as_there_is_room_for_are_all_known() -> None:
    scene = Scene(room_for(10, "t/00"))
    for number in range(11):
        scene.find(f"t/{number:02}")
    for _ in range(10):
        for number in range(10):
            scene.find(f"t/{number:02}")
    hits = scene.figures()[0]
    for number in range(10):
        scene.find(f"t/{number:02}")
    assert scene.figures()[0] == hits + 10


def test_what_is_young_again_is_counted_once() -> None:
    scene = Scene(room_for(10, "t/0"))
    for number in range(11):  # there is no room for the last one until another is forgotten
        scene.find(f"t/{number:x}")
    for number in range(3):
        scene.find(f"t/{number:x}")
        assert scene.admissions.values()["bytes"] == room_for(len(scene.admissions), "t/0")
    scene.admissions.forget("#")
    assert (len(scene.admissions), scene.admissions.values()["bytes"]) == (0, 0)


def test_a_route_goes_with_its_last_topic(scene: Scene) -> None:
    scene.subscribe("+/b")
    scene.find("a")
    before = scene.admissions.values()["bytes"]
    scene.find("a/b")
    scene.find("c/b")
    for topic in ("a/b", "c/b"):
        assert scene.admissions.values()["bytes"] > before + ROUTE
        scene.admissions.forget(topic)
    assert scene.admissions.values()["bytes"] == before


def test_one_that_would_drive_out_all_others_is_not_kept(scene: Scene) -> None:
    small, large = scene.find("a"), scene.find("a" * 1_000)
    scene = Scene(LARGEST * large.size - 1)
    assert small.size + ROUTE < large.size
    scene.find("a")
    for _ in range(3):
        scene.find("a" * 1_000)
    assert scene.figures() == (0, 4)
    assert scene.find("a").topic == "a"
    assert (len(scene.admissions), scene.figures()) == (1, (1, 4))


def test_topics_share_a_route_until_a_subscription_changes(scene: Scene) -> None:
    scene.subscribe("#")
    first, size = scene.find("a"), scene.find("a").size
    assert scene.find("b").route is first.route
    assert scene.admissions.values()["bytes"] == 2 * size + first.route.size
    scene.subscribe("c")
    assert scene.find("a") is first
    other = scene.find("d").route
    assert other is not first.route
    assert scene.admissions.values()["bytes"] == 3 * size + 2 * other.size


def test_who_comes_to_a_topic_filter_gets_a_route_of_its_own(scene: Scene) -> None:
    """Both routes have the same match: it is a subscription that came, no topic filter."""
    scene.subscribe("a")
    before = scene.find("a").route
    scene.router.add(Subscription(Session("d", Counters()), "a", 0))
    after = scene.find("a").route
    assert after.match == before.match
    assert [len(route.always) for route in (before, after)] == [1, 2]


# --- subscriptions --------------------------------------------------------------------------


@pytest.mark.uncovered
@table(
    ("topic_filter", "left"),
    [
        ("a/b", ["a/c", "é"]),
        ("$share/g/a/b", ["a/c", "é"]),
        ("é", ["a/b", "a/c"]),
        ("elsewhere", ["a/b", "a/c", "é"]),
        ("a/+", []),
        ("x/#", []),
    ],
)
@table("goes", [False, True])
@table("others", [0, 15])
def test_a_subscription_that_comes_or_goes_changes_routes(
    topic_filter: str, left: list[str], others: int, *, goes: bool
) -> None:
    topics = ["a/b", "a/c", "é"]
    scene = Scene(room_for(15, "a/b"))
    number = scene.subscribe(topic_filter)
    if not goes:
        scene.router.discard(number)
    for topic in (*topics, *map(str, range(others))):  # so many that the first ones are old
        scene.find(topic)
    if goes:
        scene.router.discard(number)
    else:
        scene.subscribe(topic_filter)
    for topic in topics:
        misses = scene.admissions.misses
        scene.find(topic)
        assert scene.admissions.misses == misses + (topic not in left)


# --- refusals -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "code"),
    [
        (b"\0\0", ReasonCode.TOPIC_NAME_INVALID),
        (b"\0\3a/+", ReasonCode.TOPIC_NAME_INVALID),
        (b"\0\1#", ReasonCode.TOPIC_NAME_INVALID),
        (b"\0\1\xff", ReasonCode.MALFORMED_PACKET),
        (b"\0\3a\0b", ReasonCode.MALFORMED_PACKET),
    ],
)
def test_what_is_no_topic_name_is_an_error_each_time(
    scene: Scene, name: bytes, code: ReasonCode
) -> None:
    for _ in range(2):
        with pytest.raises(MqttError) as error:
            scene.admissions.find(name)
        assert error.value.reason_code == code
    assert len(scene.admissions) == 0


@pytest.mark.parametrize(
    ("topic", "refusal", "says"),
    [
        ("a/b/c/d", None, False),
        ("a/b/c/d/e", ReasonCode.TOPIC_NAME_INVALID, True),
        ("a" * 101, ReasonCode.TOPIC_NAME_INVALID, True),
        ("$SYS/x", ReasonCode.NOT_AUTHORIZED, False),
        ("$SYS/b/c/d/e", ReasonCode.TOPIC_NAME_INVALID, True),
        ("$CONTROL/tidegate/uplink", None, False),
    ],
)
def test_who_may_publish_is_known(
    scene: Scene, topic: str, refusal: ReasonCode | None, *, says: bool
) -> None:
    for _ in range(2):
        found = scene.find(topic)
        assert (found.refusal, bool(found.fault)) == (refusal, says)
    assert scene.figures() == (1, 1)


def test_the_topic_s_durability_class_is_known(scene: Scene) -> None:
    assert scene.find("a").durability is None
    durability = scene.find("memory/a").durability
    assert durability is not None
    assert (durability.commit_within, durability.place) == (None, 0)


@pytest.mark.parametrize(("p2p", "addressee"), [(True, "c"), (False, None)])
def test_whom_a_peer_to_peer_topic_names_is_known(addressee: str | None, *, p2p: bool) -> None:
    assert Scene(p2p=p2p).find("a/p2p/c").addressee == addressee
    assert Scene(p2p=p2p).find("a/p2p/c/d").addressee is None


# --- in the broker --------------------------------------------------------------------------


@pytest.mark.uncovered
@table("n", [1, 2, 100])
@table("qos", [0, 1, 2])
@table("topic", ["a/b", "$SYS/x", "x/p2p/c", "full"])
def test_each_message_is_a_hit_or_a_miss(n: int, qos: int, topic: str) -> None:
    harness = Harness(BrokerSettings(p2p=True, maximum_queued_messages=1))
    client = harness.persistent("away")
    client.subscribe("full", 2)
    client.drop()
    publisher, admissions = harness.connect("p"), harness.broker.admissions
    publisher.send(*batch(n, qos, topic=topic))
    assert (admissions.hits, admissions.misses) == (n - 1, 1)
    publisher.send(*batch(n, qos, n + 1, topic=topic))
    assert (admissions.hits, admissions.misses) == (2 * n - 1, 1)


def test_what_an_admission_that_was_forgotten_remembers_is_not_counted() -> None:
    scene = Scene()
    admission = scene.find("a")
    scene.admissions.forget("#")
    assert scene.admissions.rights(admission, EVERYTHING) == EVERYTHING.rights("a")
    assert scene.admissions.held_bytes == 0
