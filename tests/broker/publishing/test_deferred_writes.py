"""Deliveries that clients were just sent: written only if no acknowledgement comes in time."""

import math
from collections.abc import Callable
from dataclasses import replace

import pytest

from gateway.mqtt.packets import Connect, Disconnect, PubAck, Publish, PubRec
from gateway.mqtt.properties import Properties
from gateway.mqtt.reason_codes import ReasonCode
from gateway.settings.broker import BrokerSettings
from gateway.settings.storage import DurabilityRule
from tests.support.broker.durable_broker import DurableHarness, away
from tests.support.broker.memory_client import MemoryClient
from tests.support.broker.payloads import payloads
from tests.support.broker.publishing import acknowledge, batch

KEPT = Properties(session_expiry_interval=3600)


class Scene:
    """A broker with a publisher and persistent subscribers `a`, `b`, ... to the topic `t`."""

    def __init__(
        self,
        *receivers: str,
        receive_maximum: int | None = None,
        delay: float = 0.005,
        **more: object,
    ) -> None:
        settings = BrokerSettings(**more)  # type: ignore[arg-type]  # by name
        self.harness = DurableHarness(settings)
        self.disk = self.harness.disk
        self.disk.commit_delay = delay
        self.receivers = [
            self.harness.persistent(name, receive_maximum=receive_maximum) for name in receivers
        ]
        for receiver in self.receivers:
            receiver.subscribe("t", 1)
        self.publisher = self.harness.connect("p")
        self.harness.commits = False
        assert self.disk.wanted is None

    def publish(self, count: int, first: int = 1) -> None:
        self.publisher.send(*batch(count, 1, first, "t"))

    def answers(self) -> list[int]:
        """Return the packet identifiers of what the publisher was answered."""
        return [each.packet_id for each in self.publisher.take() if isinstance(each, PubAck)]

    def rows(self) -> tuple[int, int]:
        return self.disk.count("message"), self.disk.count("delivery")

    def puts_off(self) -> bool:
        """Whether there is something to write, and nothing is to be written yet."""
        return self.disk.wanted is None and self.disk.wake_up.at < math.inf


@pytest.mark.parametrize("n", [1, 2, 20])
def test_puback_leaves_when_everyone_has_acknowledged(n: int) -> None:
    scene = Scene("a", "b")
    scene.publish(n)
    assert scene.answers() == []
    acknowledge(scene.receivers[0])
    assert scene.answers() == []
    assert scene.puts_off()
    acknowledge(scene.receivers[1])
    assert scene.answers() == list(range(1, n + 1))
    assert not scene.puts_off()
    assert scene.disk.commit() == 0
    assert scene.disk.elided_rows > 0


def test_what_waits_behind_a_window_is_spared_too() -> None:
    scene = Scene("a", receive_maximum=2)
    scene.publish(2)
    scene.publish(2, 3)
    assert scene.puts_off()
    acknowledge(scene.receivers[0])
    acknowledge(scene.receivers[0])
    assert scene.answers() == [1, 2, 3, 4]
    assert scene.disk.commit() == 0


def test_what_waits_for_more_than_a_window_is_written_at_once() -> None:
    scene = Scene("a", receive_maximum=2)
    for number in range(1, 6):
        scene.publish(1, number)
    assert scene.disk.wanted == 0.0
    scene.harness.commit()
    assert scene.disk.count("delivery") == 5  # also those before it, which were only deferred
    scene.harness.commit()  # what was deferred waits for two batches all the same
    assert len(scene.answers()) == 5


def test_puback_keeps_its_place_among_others() -> None:
    scene = Scene("a")
    scene.harness.commits = True
    away(scene.harness, "away")
    scene.harness.commits = False
    scene.publisher.send(Publish("away", b"x", 1, packet_id=1), Publish("t", b"x", 1, packet_id=2))
    scene.publisher.send(Publish("nobody", b"x", 1, packet_id=3))
    assert scene.disk.wanted == 0.0  # somebody who is away must get it
    acknowledge(scene.receivers[0])
    assert scene.answers() == []
    scene.harness.commit()
    none = ReasonCode.NO_MATCHING_SUBSCRIBERS
    assert scene.publisher.take() == [PubAck(1), PubAck(2), PubAck(3, none)]


def test_without_a_commit_delay_nothing_is_put_off() -> None:
    scene = Scene("a", delay=0.0)
    scene.publish(1)
    assert scene.disk.wanted == 0.0
    acknowledge(scene.receivers[0])
    assert scene.answers() == []
    scene.harness.commit()
    assert scene.answers() == [1]


def test_only_what_is_old_closes_a_batch() -> None:
    scene = Scene("a")
    delay = scene.disk.commit_delay
    scene.publish(1)
    scene.harness.pass_time(delay * 0.2)
    scene.publish(1, 2)
    scene.receivers[0].send(PubAck(1))
    scene.harness.pass_time(delay * 0.4)  # the first would be old
    assert (scene.answers(), scene.puts_off()) == ([1], True)
    scene.harness.pass_time(delay * 0.2)
    assert scene.disk.wanted == 0.0
    for _ in range(2):
        scene.harness.commit()
    assert (scene.answers(), scene.rows()) == ([2], (1, 1))


@pytest.mark.parametrize("n", [1, 2, 20])
def test_what_is_not_acknowledged_in_time_is_written(n: int) -> None:
    scene = Scene("a")
    scene.publish(n)
    scene.harness.pass_time(scene.disk.commit_delay)
    scene.harness.commit()  # it was deferred for two batches
    assert scene.disk.wanted == scene.disk.commit_delay / 2
    assert (scene.answers(), scene.rows()) == ([], (0, 0))
    scene.harness.commit()
    assert scene.answers() == list(range(1, n + 1))
    acknowledge(scene.receivers[0])
    scene.harness.commit()
    assert scene.rows() == (0, 0)


@pytest.mark.parametrize("old", [False, True])
def test_what_is_acknowledged_after_its_batch_was_closed_is_not_written(*, old: bool) -> None:
    scene = Scene("a")
    scene.publish(3)
    if old:
        scene.harness.pass_time(scene.disk.commit_delay)
    scene.harness.commit()
    acknowledge(scene.receivers[0])
    assert scene.answers() == [1, 2, 3]
    scene.harness.commit()
    assert scene.rows() == (0, 0)


def test_what_is_being_written_waits_for_that() -> None:
    scene = Scene("a")
    scene.publish(1)
    scene.harness.commit()
    for gather in scene.disk.before_batch:
        gather()
    acknowledge(scene.receivers[0])
    assert scene.answers() == []
    scene.harness.commit()
    assert scene.answers() == [1]
    assert scene.disk.count("delivery") == 0


def test_a_message_that_somebody_else_must_get_is_written_whole() -> None:
    scene = Scene("a", "b", "c")
    scene.receivers[1].drop()
    scene.publish(1)
    assert scene.disk.wanted == 0.0
    scene.harness.commit()
    assert scene.rows() == (1, 3)
    scene.harness.commit()  # those who are here were promised the batch behind it
    assert scene.answers() == [1]
    scene.harness.crash()
    scene.harness.commits = True
    assert [payloads(scene.harness.persistent(name).take()) for name in "abc"] == [[b"1"]] * 3


def test_no_later_message_is_written_without_it() -> None:
    """[MQTT-4.6.0-6]: its publisher would send it again, behind the later one."""
    scene = Scene("a")
    scene.harness.commits = True
    away(scene.harness, "to/both")
    scene.receivers[0].subscribe("to/both", 1)
    other = scene.harness.connect("other")
    scene.harness.commits = False
    scene.publish(1)
    other.send(Publish("to/both", b"later", 1, packet_id=1))
    scene.harness.commit()
    scene.harness.commits = True
    scene.harness.crash()
    assert payloads(scene.harness.persistent("a").take()) == [b"1", b"later"]


def test_a_qos_2_message_is_written_with_its_packet_identifier() -> None:
    """[MQTT-4.3.3-10]: what is resent after a crash is delivered unless the message was kept."""
    scene = Scene("a")
    packet = Publish("t", b"1", 2, packet_id=1)
    scene.harness.commits = True
    publisher = scene.harness.persistent("q")
    scene.harness.commits = False
    publisher.send(packet)
    scene.harness.commit()
    scene.harness.commits = True
    scene.harness.crash()
    receiver, publisher = scene.harness.persistent("a"), scene.harness.persistent("q")
    publisher.send(replace(packet, dup=True))
    assert publisher.take() == [PubRec(1)]
    assert payloads(receiver.take()) == [b"1"]


# --- somebody goes --------------------------------------------------------------------------


def _drop(receiver: MemoryClient) -> None:
    receiver.drop()


def _take_over(receiver: MemoryClient) -> None:
    again = receiver.harness.open()
    again.send(Connect("a", clean_start=False, properties=KEPT))


@pytest.mark.parametrize("leave", [_drop, _take_over])
def test_what_a_client_that_goes_was_sent_is_due_at_once(
    leave: Callable[[MemoryClient], None],
) -> None:
    scene = Scene("a")
    scene.publish(1)
    leave(scene.receivers[0])
    assert scene.disk.wanted == 0.0
    assert scene.answers() == []
    for _ in range(2):  # an empty batch, and the one that was promised
        scene.harness.commit()
    assert (scene.answers(), scene.rows()) == ([1], (1, 1))


def test_what_a_session_that_ends_was_sent_is_owed_to_nobody() -> None:
    scene = Scene("a")
    scene.publish(1)
    scene.receivers[0].send(Disconnect(properties=Properties(session_expiry_interval=0)))
    assert scene.answers() == [1]
    scene.harness.commit()
    assert scene.rows() == (0, 0)


@pytest.mark.parametrize("says", [False, True])
def test_a_publisher_that_goes_gets_its_answer_if_it_still_can(*, says: bool) -> None:
    scene = Scene("a")
    scene.publish(1)
    if says:
        scene.publisher.send(Disconnect())
        assert not scene.publisher.closed()
    else:
        scene.publisher.drop()
    acknowledge(scene.receivers[0])
    assert scene.answers() == [1] * says
    assert scene.publisher.closed()
    assert scene.rows() == (0, 0)


# --- durability classes ---------------------------------------------------------------------


def test_what_waits_for_its_class_waits_as_long() -> None:
    scene = Scene("a", durability=(DurabilityRule("batch(200)", topic="t"),))
    delay = scene.disk.commit_delay
    scene.publish(1)
    scene.harness.pass_time(delay)
    assert scene.disk.wanted == pytest.approx(0.2 - delay)
    for _ in range(2):
        scene.harness.commit()
    assert (scene.answers(), scene.rows()) == ([1], (1, 1))


def test_what_is_kept_in_memory_alone_waits_for_nothing() -> None:
    scene = Scene("a", durability=(DurabilityRule("memory", topic="t"),))
    scene.publish(2)
    assert scene.answers() == [1, 2]
    acknowledge(scene.receivers[0])
    assert len(scene.harness.session("a").inflight) == 0
    assert scene.rows() == (0, 0)
