import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.broker.client_classes import DeliveryClasses, DurabilityClasses
from gateway.broker.connecting.connection_info import ConnectionInfo
from gateway.broker.publishing.topic_admissions import TopicAdmission
from gateway.mqtt.delivery_policy import EACH, DeliveryPolicy
from gateway.mqtt.message import Message
from gateway.mqtt.packets import PubAck, Publish, PubRec, Will
from gateway.routing.route import NOWHERE, Route
from gateway.session.durability_class import DurabilityClass
from gateway.settings.broker import BrokerSettings
from gateway.settings.delivery import DeliveryClassSettings, DeliverySettings
from gateway.settings.durability import commit_within
from gateway.settings.storage import DurabilityRule
from tests.support.broker.broker_harness import Harness
from tests.support.broker.inline import Inline
from tests.support.disk.held_disk import Disk
from tests.support.table import table

BUFFERED = DeliveryClassSettings("buffered")


def policies(settings: DeliverySettings) -> list[DeliveryPolicy]:
    """Return those of `device`, `device_persistent` and `application`."""
    return [each.policy for each in DeliveryClasses(settings)]


def terms(policy: DeliveryPolicy) -> tuple[int, int, float]:
    return policy.count, policy.size, policy.delay


def test_every_message_leaves_at_once_unless_the_configuration_says_else() -> None:
    assert policies(DeliverySettings()) == [EACH, EACH, EACH]


def test_each_class_has_bounds_of_its_own() -> None:
    device, persistent, application = policies(
        DeliverySettings(7, 20, BUFFERED, BUFFERED, BUFFERED)
    )
    assert terms(device) == terms(persistent) == (5, 65_536, 0.2)
    assert terms(application) == (10, 65_536, 0.0)
    assert device.step == 0.02
    other = DeliveryClassSettings("buffered", 3, 100, 50)
    assert terms(policies(DeliverySettings(application=other))[2]) == (3, 100, 0.05)


MEMORY = DurabilityRule("memory", topic="position/+")
SENSORS = DurabilityRule("batch(50)", client="sensor-*")
VALVES = DurabilityRule("commit", topic="valves/#")


def classes(*entries: DurabilityRule, default: str = "commit") -> DurabilityClasses:
    return DurabilityClasses(entries, default)


def within(
    of: DurabilityClasses, client_id: str, topic: str, listener: float | None = -1.0
) -> float | None:
    """Return what holds; a listener of -1.0 says nothing."""
    of_listener = None if listener == -1.0 else DurabilityClass(listener)
    admission = TopicAdmission(topic, Route(NOWHERE))
    admission.durability = of.of_topic(topic)
    return admission.commit_within(of.of_client(client_id, of_listener))


def test_without_entries_the_listener_and_then_the_default_hold() -> None:
    assert within(classes(), "c", "a") == 0.0
    assert within(classes(default="batch(200)"), "c", "a") == 0.2
    assert within(classes(default="batch(200)"), "c", "a", listener=None) is None
    assert within(classes(default="memory"), "c", "a", listener=0.0) == 0.0


CASES = [
    ((MEMORY, SENSORS), "sensor-1", "position/a", None),
    ((SENSORS, MEMORY), "sensor-1", "position/a", 0.05),
    ((SENSORS, MEMORY), "pump", "position/a", None),
    ((SENSORS, MEMORY), "pump", "position/a/b", 0.3),
    ((SENSORS, MEMORY), "sensor-", "other", 0.05),
    ((SENSORS, MEMORY), "my-sensor-1", "other", 0.3),
    ((VALVES, SENSORS), "sensor-1", "valves", 0.0),
    ((DurabilityRule("batch(100)", client="*"), VALVES), "sensor-1", "valves/1", 0.1),
    ((DurabilityRule("batch(100)", topic="#"), VALVES), "sensor-1", "valves/1", 0.1),
    ((DurabilityRule("batch(100)", topic="#"),), "sensor-1", "$SYS/a", 0.3),
]


@table(("entries", "client_id", "topic", "expected"), CASES)
def test_the_first_entry_that_fits_holds(
    entries: tuple[DurabilityRule, ...], client_id: str, topic: str, expected: float | None
) -> None:
    assert within(classes(*entries), client_id, topic, listener=0.3) == expected


@pytest.mark.uncovered
@given(
    st.lists(
        st.builds(
            lambda within, pattern, by_client: (
                DurabilityRule(within, client=pattern)
                if by_client
                else DurabilityRule(within, topic=pattern)
            ),
            st.sampled_from(["commit", "batch(10)", "batch(500)", "memory"]),
            st.sampled_from(["a", "b"]),
            st.booleans(),
        ),
        max_size=6,
    ),
    st.sampled_from(["a", "b", "c"]),
    st.sampled_from(["a", "b", "c"]),
)
def test_the_order_of_the_configuration_decides(
    entries: list[DurabilityRule], client_id: str, topic: str
) -> None:
    fitting = (each for each in entries if each.client == client_id or each.topic == topic)
    first = next(fitting, DurabilityRule("batch(250)"))
    assert within(classes(*entries), client_id, topic, listener=0.25) == commit_within(
        first.durability
    )


# --- in the broker --------------------------------------------------------------------------


def harness(*entries: DurabilityRule, default: str = "commit") -> tuple[Harness, Inline]:
    made = Harness(BrokerSettings(durability=entries, default_durability=default), Disk())
    rows = Inline(disk=made.disk)
    made.broker.subscribe_inline(rows, ["#"])
    return made, rows


def test_a_message_has_the_class_of_its_publisher_or_topic() -> None:
    made, rows = harness(MEMORY, SENSORS, default="batch(200)")
    for client_id in ("sensor-1", "pump"):
        client = made.connect(client_id)
        client.send(Publish("position/a"), Publish("other"))
    listened = made.connect("x", info=ConnectionInfo(durability_class=DurabilityClass(0.7)))
    listened.send(Publish("position/a"), Publish("other"))
    assert [each.commit_within for each in rows.taken] == [None, 0.05, None, 0.2, None, 0.7]


def test_a_message_of_the_gateway_has_the_class_of_its_topic() -> None:
    made, rows = harness(MEMORY, DurabilityRule("batch(50)", client="*"), default="batch(200)")
    for topic in ("position/a", "other"):
        made.broker.publish(Message(topic, client_id="serial"), made.instant)
    kept = Message("other")
    kept.commit_within = None
    made.broker.publish(kept, made.instant)
    assert [each.commit_within for each in rows.taken] == [None, 0.2, None]


@pytest.mark.parametrize(("qos", "answer"), [(1, PubAck(7)), (2, PubRec(7))])
def test_in_memory_an_answer_waits_for_no_row(qos: int, answer: PubAck | PubRec) -> None:
    made, rows = harness(MEMORY)
    client = made.connect("c")
    client.send(Publish("position/a", qos=qos, packet_id=7))
    assert rows.taken
    assert made.disk is not None
    assert made.disk.pending_rows
    assert client.take() == [answer]


def test_a_will_is_a_message_of_its_client() -> None:
    made, rows = harness(MEMORY, SENSORS)
    made.connect("sensor-1", will=Will("gone", b"x", 1)).drop()
    made.connect("pump", will=Will("position/a", b"x", 1)).drop()
    assert [each.commit_within for each in rows.taken] == [0.05, None]


def test_a_session_has_the_class_of_its_client_anew_with_each_connection() -> None:
    made, _ = harness(SENSORS, MEMORY, default="batch(200)")
    made.persistent("sensor-1").drop()
    assert made.session("sensor-1").durability_class.commit_within == 0.05
    made.persistent("pump").drop()
    assert made.session("pump").durability_class.commit_within == 0.2
    info = ConnectionInfo(durability_class=DurabilityClass(None))
    made.connect("pump", clean_start=False, session_expiry=10, info=info)
    assert made.session("pump").durability_class.commit_within is None
