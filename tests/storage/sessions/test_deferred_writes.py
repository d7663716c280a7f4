"""What online sessions are owed is written if they don't acknowledge it, and only then."""

import pytest

from gateway.access.access import EVERYTHING
from gateway.mqtt.message import Message
from gateway.mqtt.packets import PubAck, Publish, PubRec, Unsubscribe
from gateway.mqtt.reason_codes import ReasonCode
from gateway.session.durability_class import DurabilityClass
from tests.support.broker.durable_broker import DurableHarness, away
from tests.support.broker.payloads import payloads


def publishes(count: int, qos: int = 1, *, retain: bool = False) -> list[Publish]:
    """Return messages that are numbers from 0 on."""
    return [Publish("t", b"%d" % n, qos, retain, packet_id=n + 1) for n in range(count)]


class Late:
    """A receiver that stays online; batches are committed when the test says so."""

    def __init__(self, receive_maximum: int | None = None) -> None:
        self.harness = DurableHarness()
        self.receiver = self.harness.persistent("receiver", receive_maximum=receive_maximum)
        self.receiver.subscribe("t", 1)
        self.publisher = self.harness.persistent("publisher")
        self.harness.commits = False

    def after_a_crash(self) -> list[bytes]:
        self.harness.crash()
        self.harness.commits = True
        self.harness.settle()
        return payloads(self.harness.persistent("receiver").take())


@pytest.fixture
def late() -> Late:
    return Late()


@pytest.mark.parametrize("count", [2, 100])
def test_one_message_that_is_not_acknowledged_holds_all_of_its_batch(
    late: Late, count: int
) -> None:
    late.publisher.send(*publishes(count))
    late.receiver.send(*(PubAck(n + 1) for n in range(count) if n != 1))
    assert not late.publisher.take()
    late.harness.commit()
    late.harness.commit()
    assert len(late.publisher.take()) == count
    assert late.after_a_crash() == [b"1"]


@pytest.mark.uncovered
@pytest.mark.parametrize("also", ["retained", "row", "away", "QoS 2"])
@pytest.mark.parametrize("count", [1, 2, 50])
@pytest.mark.parametrize("commits", [1, 2])
def test_an_answer_that_waits_for_the_disk_anyway_waits_for_all_that_it_promises(
    late: Late, also: str, count: int, commits: int
) -> None:
    """A crash between the two commits must not lose what the later one brings."""
    harness = late.harness
    if also == "away":
        harness.commits = True
        away(harness, "t", "other", 1)
        harness.commits = False
    elif also == "row":
        harness.broker.subscribe_inline(Rows(harness), ["t"])
    qos = 2 if also == "QoS 2" else 1
    late.publisher.send(*publishes(count, qos, retain=also == "retained"))
    for _ in range(commits):
        harness.commit()
    answers = [each for each in late.publisher.take() if isinstance(each, PubAck | PubRec)]
    assert len(answers) == count or commits < 2
    expected = [b"%d" % (each.packet_id - 1) for each in answers]
    assert late.after_a_crash()[: len(expected)] == expected


class Rows:
    """A part of the gateway that makes a row of each message."""

    client_id = "rows"
    inline = True
    refusal = "it refuses"
    access = EVERYTHING

    def __init__(self, harness: DurableHarness) -> None:
        self.harness = harness

    def receive(self, message: Message, topic_filters: list[str]) -> ReasonCode:
        name = f"{topic_filters[0]} {message.payload!r}"
        self.harness.disk.add("INSERT INTO meta (name, value) VALUES (?, 1)", (name,))
        return ReasonCode.SUCCESS


def test_what_comes_behind_what_is_due_is_written_in_its_own_time() -> None:
    """A batch that closes late for one class must not make one that is due at once wait."""
    late = Late()
    disk, harness = late.harness.disk, late.harness
    for within in (0.05, 0.0):
        harness.session("publisher").durability_class = DurabilityClass(within)
        late.publisher.send(Publish("t", b"x", 1, packet_id=1 + (not within)))
        assert disk.wake_up.at == pytest.approx(harness.now + disk.commit_delay / 2, abs=1e-6)
        disk.wake_up.ring()
        assert disk.wanted == pytest.approx(max(0.0, within - disk.commit_delay))


def test_who_leaves_makes_it_needed(late: Late) -> None:
    late.publisher.send(*publishes(2))
    late.receiver.drop()
    late.harness.commit()
    assert (late.harness.disk.count("message"), late.harness.disk.count("delivery")) == (1, 1)
    assert late.after_a_crash() == [b"0", b"1"]


def test_a_part_that_was_sent_when_its_client_leaves_is_promised_by_itself() -> None:
    """It gets a row of its own, for which the publisher's answer waits as for the rest."""
    late = Late(receive_maximum=2)
    late.publisher.send(*publishes(5))
    first, _ = late.receiver.take()
    assert isinstance(first, Publish)
    late.receiver.send(PubAck(first.packet_id))
    late.receiver.drop()
    assert not late.publisher.take()
    late.harness.commit()
    late.harness.commit()
    assert len(late.publisher.take()) == 5
    assert late.after_a_crash() == [b"1", b"2", b"3", b"4"]


def test_a_subscription_that_is_given_up_is_gone(late: Late) -> None:
    before = late.harness.disk.count("subscription")
    late.receiver.send(Unsubscribe(1, ["t"]))
    late.harness.commit()
    assert (before, late.harness.disk.count("subscription")) == (1, 0)


def test_without_durability_no_answer_waits(late: Late) -> None:
    late.harness.disk.durable = False
    late.publisher.send(*publishes(1))
    assert len(late.publisher.take()) == 1
