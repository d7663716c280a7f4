from gateway.broker.connecting.connection_info import ConnectionInfo
from gateway.mqtt.delivery_policy import EACH
from gateway.mqtt.packets import (
    MQTT_3_1_1,
    MQTT_5,
    Disconnect,
    PingReq,
    PingResp,
    PubAck,
    Publish,
    PubRel,
    SubAck,
    Subscribe,
)
from gateway.mqtt.properties import Properties
from gateway.mqtt.reason_codes import ReasonCode
from gateway.settings.broker import BrokerSettings
from gateway.settings.delivery import DeliveryClassSettings, DeliveryRule, DeliverySettings
from tests.support.broker.broker_harness import Harness
from tests.support.broker.durable_broker import DurableHarness
from tests.support.broker.memory_client import MemoryClient
from tests.support.broker.subscribing import request

BUFFERED = DeliveryClassSettings("buffered", 3, 1000, 200)
TEN_SECONDS = DeliveryClassSettings("buffered", 9, 1000, 10_000)

SETTINGS = BrokerSettings(
    delivery=DeliverySettings(
        device=BUFFERED,
        application=DeliveryClassSettings("buffered", 10, 1000, 0),
        rules=(
            DeliveryRule("application", client="app-*"),
            DeliveryRule("device_persistent", user="ada"),
        ),
    )
)


def subscribe(client: MemoryClient, deliver: str, topic_filter: str = "t", qos: int = 1) -> SubAck:
    properties = Properties(user_properties=(("$deliver", deliver),))
    client.send(Subscribe(9, [request(topic_filter, qos)], properties))
    return client.take_only(SubAck)


def payloads(client: MemoryClient) -> str:
    """What came since the last time, in its order."""
    return "".join(each.payload.decode() for each in client.take() if isinstance(each, Publish))


def publish(harness: Harness, payload: str, qos: int = 1, topic: str = "t") -> None:
    publisher = harness.broker.clients.get("publisher")
    if publisher is None:
        harness.connect("publisher")
    client = next(each for each in harness.clients if each.client.session.client_id == "publisher")  # type: ignore[union-attr]
    for each in payload:
        client.send(Publish(topic, each.encode(), qos, packet_id=7 if qos else 0))
        if qos == 2:
            client.send(PubRel(7))
        client.take()


def test_messages_leave_when_they_are_enough_or_were_held_long_enough() -> None:
    for qos in (0, 1):
        harness = Harness(SETTINGS)
        client = harness.connect("c")
        client.subscribe("t", qos)
        publish(harness, "ab", qos)
        assert payloads(client) == ""
        publish(harness, "cd", qos)
        assert payloads(client) == "abc"
        harness.pass_time(0.1)
        assert payloads(client) == ""
        harness.pass_time(0.1)
        assert payloads(client) == "d"


def test_at_qos_2_a_message_is_on_disk_and_is_held_as_long_as_others() -> None:
    durable = BrokerSettings(delivery=DeliverySettings(device_persistent=BUFFERED))
    harness = DurableHarness(durable)
    client = harness.persistent("c")
    client.subscribe("t", 2)
    publish(harness, "ab", 2)
    assert payloads(client) == ""
    publish(harness, "c", 2)
    assert payloads(client) == "abc"
    publish(harness, "d", 2)
    harness.pass_time(0.1)
    assert payloads(client) == ""
    harness.commits = False
    publish(harness, "e", 2)
    harness.pass_time(0.1)
    assert payloads(client) == "d"
    harness.commits = True
    harness.commit()
    assert payloads(client) == "e"
    publish(harness, "f", 2)
    client.drop()
    harness.crash()
    found = harness.persistent("c")
    assert payloads(found) == "abcdef", "what was not completed comes again"


def test_a_subscription_has_a_policy_of_its_own() -> None:
    harness = Harness()
    client = harness.connect("c")
    assert subscribe(client, "n=2,ms=50").reason_codes == [ReasonCode.GRANTED_QOS_1]
    publish(harness, "a")
    assert payloads(client) == ""
    publish(harness, "b")
    assert payloads(client) == "ab"
    publish(harness, "c")
    harness.pass_time(0.05)
    assert payloads(client) == "c"
    subscribe(client, "each")  # in place of the other
    publish(harness, "d")
    assert payloads(client) == "d"


def test_of_overlapping_subscriptions_the_one_that_holds_least_counts() -> None:
    harness = Harness()
    client = harness.connect("c")
    subscribe(client, "n=10")
    subscribe(client, "n=2", "+")
    publish(harness, "ab")
    assert payloads(client) == "ab"
    subscribe(client, "each", "#")
    publish(harness, "c")
    assert payloads(client) == "c"


def test_shared_and_filtered_subscriptions_have_policies_too() -> None:
    harness = Harness()
    shared, filtered = harness.connect("s"), harness.connect("f")
    subscribe(shared, "n=2", "$share/g/t")
    properties = Properties(user_properties=(("$where", "payload >= '1'"), ("$deliver", "n=2")))
    filtered.send(Subscribe(9, [request("t", 1)], properties))
    filtered.take()
    publish(harness, "1")
    assert payloads(shared) + payloads(filtered) == ""
    publish(harness, "2")
    assert (payloads(shared), payloads(filtered)) == ("12", "12")


def test_a_policy_that_cannot_be_read_is_refused_with_the_reason() -> None:
    harness = Harness()
    client = harness.connect("c")
    suback = subscribe(client, "n=0,ms=5")
    assert suback.reason_codes == [ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR]
    assert suback.properties.reason_string == "$deliver: 'n=0': n is 1 to 1000"
    publish(harness, "a")
    assert payloads(client) == ""


def test_a_window_that_is_full_holds_nothing() -> None:
    harness = Harness(SETTINGS)
    client = harness.connect("c", receive_maximum=2)
    client.subscribe("t", 1)
    publish(harness, "abc")
    assert payloads(client) == "ab"
    client.send(PubAck(1))
    assert payloads(client) == "c"  # it has waited long enough


def test_answers_take_along_what_is_held() -> None:
    harness = Harness(SETTINGS)
    client = harness.connect("c")
    client.subscribe("t", 1)
    publish(harness, "a")
    client.send(PingReq())
    first, second = client.take()
    assert isinstance(first, Publish)
    assert second == PingResp()


def say_goodbye(client: MemoryClient) -> None:
    client.send(Disconnect())


def stop(client: MemoryClient) -> None:
    client.client.disconnect(ReasonCode.SERVER_SHUTTING_DOWN)


def take_over(client: MemoryClient) -> None:
    client.harness.connect("c")


def test_what_is_held_leaves_before_the_connection_ends() -> None:
    for version in (MQTT_3_1_1, MQTT_5):
        for end in (say_goodbye, stop, take_over):
            harness = Harness(SETTINGS)
            client = harness.connect("c", version)
            client.subscribe("t", 1)
            publish(harness, "a")
            assert client.inbox == []
            end(client)
            harness.settle()
            assert payloads(client) == "a"
            assert client.closed()


def test_a_message_is_not_held_until_it_expires() -> None:
    harness = Harness(BrokerSettings(delivery=DeliverySettings(device=TEN_SECONDS)))
    client, publisher = harness.connect("c"), harness.connect("p")
    client.subscribe("t", 1)
    expiring = Properties(message_expiry_interval=1)
    publisher.send(Publish("t", b"a", 1, packet_id=7, properties=expiring))
    harness.pass_time(0.49)
    assert payloads(client) == ""
    harness.pass_time(0.02)
    assert payloads(client) == "a"
    longer = Properties(message_expiry_interval=1000)
    publisher.send(Publish("t", b"b", 1, packet_id=7, properties=longer))
    harness.pass_time(1.0)
    assert payloads(client) == "b"


def test_a_held_message_that_was_not_acknowledged_comes_again() -> None:
    harness = Harness(BrokerSettings(delivery=DeliverySettings(device_persistent=BUFFERED)))
    client = harness.persistent("c")
    client.subscribe("t", 1)
    publish(harness, "ab")
    assert payloads(client) == ""
    client.drop()
    again = harness.persistent("c")
    first, second = again.take()
    assert isinstance(first, Publish)
    assert isinstance(second, Publish)
    assert (first.payload, first.dup, second.payload) == (b"a", True, b"b")


def test_a_class_is_chosen_by_rule_then_listener_then_session() -> None:
    classes = Harness(SETTINGS).broker.delivery_classes
    cases = {
        ("app-1", None, None, False): "application",
        ("app-1", "ada", "device", True): "application",
        ("c", "ada", "device", False): "device_persistent",
        ("c", "bob", "application", False): "application",
        ("c", None, None, False): "device",
        ("c", None, None, True): "device_persistent",
    }
    for (client_id, user, listener, persistent), expected in cases.items():
        found = classes.of_client(client_id, user, listener, persistent=persistent)
        assert found.name == expected
    assert [each.name for each in classes] == ["device", "device_persistent", "application"]
    assert [each.policy.holds for each in classes] == [True, False, False]


def test_a_client_has_the_class_of_its_listener() -> None:
    harness = Harness(SETTINGS)
    client = harness.connect("c", info=ConnectionInfo(delivery="device_persistent"))
    session = harness.broker.sessions["c"]
    assert (session.delivery.name, session.delivery.policy) == ("device_persistent", EACH)
    client.subscribe("t")
    publish(harness, "a", 0)
    assert payloads(client) == "a"
