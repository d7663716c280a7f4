import pytest

from gateway.access.topics import MAXIMUM_DELAY, delay_of
from gateway.broker import own_names
from gateway.broker.publishing.delays import AT_ONCE, MAXIMUM_MESSAGES, PAUSE
from gateway.mqtt.packets import ConnAck, Connect, Disconnect, PubAck, Publish, PubRec
from gateway.mqtt.properties import Properties
from gateway.mqtt.reason_codes import ReasonCode
from gateway.storage.sessions import pager
from tests.support.broker.broker_harness import REFUSING, UNSHARED, Harness
from tests.support.broker.durable_broker import DurableHarness
from tests.support.broker.memory_client import MemoryClient

DELAYS = {
    "$delay/1/a": 1,
    "$delay/007/a/b": 7,
    "$delay/0000007/a": 7,
    "$delay/00000007/a": None,  # no number of a week has eight digits
    "$delay/000000007/a": None,
    f"$delay/{MAXIMUM_DELAY}//": MAXIMUM_DELAY,
    f"$delay/{MAXIMUM_DELAY + 1}/a": None,
    "$delay/0/a": None,
    "$delay/-1/a": None,
    "$delay/1.5/a": None,
    "$delay/٣/a": None,
    "$delay/1": None,
    "$delay/1/": None,
    "$delay/1/$SYS/a": None,
    "$delay/99999999999/a": None,
    "delay/1/a": None,
    "$delayed/1/a": None,
}


def heard(client: MemoryClient) -> list[bytes]:
    return [each.payload for each in client.take() if isinstance(each, Publish)]


def put_off(client: MemoryClient, payload: bytes, topic: str, qos: int = 1) -> ReasonCode | None:
    client.send(Publish(topic, payload, qos, packet_id=7 if qos else 0))
    for answer in client.take():
        if isinstance(answer, PubAck | PubRec | Disconnect):
            return answer.reason_code
    return None


def test_a_topic_says_how_long() -> None:
    assert MAXIMUM_DELAY == 604_800  # a week
    for topic, seconds in DELAYS.items():
        assert delay_of(topic) == seconds, topic


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_message_comes_after_its_delay(qos: int) -> None:
    harness = DurableHarness()
    subscriber, publisher = harness.connect("s"), harness.connect("p")
    subscriber.subscribe("#", 2)
    put_off(publisher, b"b", "$delay/20/t/a", qos)
    if qos == 2:
        publisher = harness.connect("q")
    put_off(publisher, b"a", "$delay/10/t/a", qos)
    assert harness.broker.delays.waiting == 2
    harness.pass_time(9)
    assert heard(subscriber) == []
    harness.pass_time(1)
    (message,) = (each for each in subscriber.take() if isinstance(each, Publish))
    assert (message.topic, message.payload, message.qos) == ("t/a", b"a", qos)
    harness.pass_time(10)
    assert heard(subscriber) == [b"b"]
    assert harness.broker.queue_memory.deliveries == 0


@pytest.mark.parametrize("topics", [["$delay/10/t"] * 3, [f"$delay/{n}0/t" for n in (3, 1, 2)]])
def test_messages_that_come_together_wait_each_for_its_moment(topics: list[str]) -> None:
    harness = DurableHarness()
    harness.persistent("s").subscribe("t", 1)
    publisher = harness.connect("p")
    together = [Publish(topic, topic.encode(), 1, packet_id=n) for n, topic in enumerate(topics, 1)]
    publisher.send(*together)
    assert [each.packet_id for each in publisher.take() if isinstance(each, PubAck)] == [1, 2, 3]
    assert (harness.broker.delays.waiting, harness.broker.queue_memory.deliveries) == (3, 3)
    came = []
    for seconds in (9, 1, 10, 10):
        harness.pass_time(seconds)
        subscriber = harness.persistent("s")
        messages = [each for each in subscriber.take() if isinstance(each, Publish)]
        subscriber.send(*(PubAck(each.packet_id) for each in messages))
        came.append([each.payload for each in messages])
        harness.crash(0.0)
    own = sorted(topic.encode() for topic in topics)
    assert came == ([[], own, [], []] if topics[0] == topics[1] else [[], *([one] for one in own)])


def test_what_is_put_off_among_others_waits_alone() -> None:
    harness = DurableHarness()
    subscriber, publisher = harness.connect("s"), harness.connect("p")
    subscriber.subscribe("t", 1)
    topics = ["t", "t", "$delay/10/t", "t", "$delay/10/t", "$delay/10/t", "t"]
    publisher.send(
        *(Publish(topic, b"%d" % n, 1, packet_id=n) for n, topic in enumerate(topics, 1))
    )
    assert harness.broker.delays.waiting == 3
    assert heard(subscriber) == [b"1", b"2", b"4", b"7"]
    harness.crash()
    assert harness.broker.delays.waiting == 3


def test_messages_of_qos_1_survive_a_crash_and_come_once() -> None:
    harness = DurableHarness()
    publisher = harness.connect("p")
    put_off(publisher, b"lost", "$delay/10/t", 0)
    for number in range(30):
        assert put_off(publisher, b"%d" % number, f"$delay/{10 + number}/t") == 0
    harness.crash(5.0)
    assert harness.broker.delays.waiting == 30
    subscriber = harness.persistent("s")
    subscriber.subscribe("t", 1)
    harness.pass_time(20)
    assert len(heard(subscriber)) == 16
    harness.pass_time(2)
    harness.crash(1.0)
    assert harness.broker.delays.waiting == 12
    harness.pass_time(20)
    assert harness.broker.delays.waiting == 0


def test_more_than_is_read_at_a_start_comes_back_in_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pager, "PAGE_MESSAGES", 100)
    harness = DurableHarness()
    publisher = harness.connect("p")
    for number in range(1_500):
        publisher.send(Publish(f"$delay/{60 + number}/t", b"x", 1, packet_id=7))
        publisher.take()
    harness.crash()
    harness.pass_time(0)
    assert harness.broker.delays.waiting == 1_500


def test_what_is_no_delay_is_refused() -> None:
    harness = Harness()
    for qos, topic in ((1, "$delay/0/t"), (2, "$delay/x/t"), (0, "$delay/1/$SYS")):
        client = harness.connect("p")
        assert put_off(client, b"x", topic, qos) == ReasonCode.TOPIC_NAME_INVALID
    assert harness.broker.delays.waiting == 0


def test_commands_are_not_put_off() -> None:
    harness = Harness()
    client = harness.connect("p")
    assert put_off(client, b"x", "$delay/1/$CONTROL/tidegate/uplink") == (
        ReasonCode.TOPIC_NAME_INVALID
    )


def test_one_more_than_may_wait_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.broker.publishing.delays.MAXIMUM_MESSAGES", 2)
    assert MAXIMUM_MESSAGES == 10_000
    harness = Harness(UNSHARED)
    client = harness.connect("p")
    codes = [put_off(client, b"x", "$delay/9/t") for _ in range(3)]
    assert codes == [ReasonCode.SUCCESS, ReasonCode.SUCCESS, ReasonCode.QUOTA_EXCEEDED]


def test_others_have_their_turn_while_many_are_published() -> None:
    harness = Harness()
    subscriber, client = harness.connect("s"), harness.connect("p")
    subscriber.subscribe("t")
    client.send(*(Publish("$delay/5/t", b"%d" % number) for number in range(2 * AT_ONCE + 1)))
    for count, more in ((AT_ONCE, True), (AT_ONCE, True), (1, False)):
        due = harness.pass_time(PAUSE if harness.broker.delays.waiting < 2 * AT_ONCE else 5)
        assert len(heard(subscriber)) == count
        assert more is (due is not None and due <= harness.now + 2 * PAUSE)


def test_a_full_disk_refuses_what_would_be_kept() -> None:
    harness = DurableHarness()
    client = harness.connect("p")
    harness.disk.full = True
    assert put_off(client, b"x", "$delay/9/t") == ReasonCode.QUOTA_EXCEEDED
    assert harness.broker.delays.waiting == 0


def test_a_message_that_expires_before_its_moment_is_given_up() -> None:
    harness = Harness()
    subscriber, client = harness.connect("s"), harness.connect("p")
    subscriber.subscribe("t", 1)
    expiring = Properties(message_expiry_interval=5)
    client.send(Publish("$delay/10/t", b"x", 1, packet_id=7, properties=expiring))
    harness.pass_time(10)
    assert heard(subscriber) == []
    assert harness.counters.count("publish/messages/expired") == 1


def test_a_message_that_is_refused_at_its_moment_is_tried_again() -> None:
    harness = DurableHarness(REFUSING)
    full = harness.persistent("full")
    full.subscribe("t", 1)
    full.drop()
    queue = harness.session("full").queue
    queue.maximum_messages = 0
    client = harness.connect("p")
    put_off(client, b"x", "$delay/5/t")
    put_off(client, b"y", "$delay/50/t")
    harness.pass_time(5)
    assert harness.broker.delays.waiting == 2
    queue.maximum_messages = 10
    harness.pass_time(1)
    assert (harness.broker.delays.waiting, queue.messages) == (1, 1)


def test_no_client_may_have_its_name() -> None:
    harness = Harness()
    client = harness.open()
    client.send(Connect(own_names.DELAYS, 5))
    assert client.take_only(ConnAck).reason_code == ReasonCode.CLIENT_IDENTIFIER_NOT_VALID
