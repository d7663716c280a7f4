"""What nobody waits for any more, expired or left by a session, is deleted on disk bit by bit."""

from itertools import pairwise

import pytest

from gateway.mqtt.packets import Connect, Disconnect, Publish
from gateway.storage.sessions import pager
from tests.support.broker.durable_broker import DurableHarness, away
from tests.support.broker.paged_queues import HEAD, MESSAGES, drain, fill, numbers

pytestmark = pytest.mark.usefixtures("small_pages")


def begin_anew(harness: DurableHarness) -> None:
    """End the session by a connection that wants none of it."""
    client = harness.open()
    client.send(Connect("c", clean_start=True))
    client.drop()


@pytest.mark.parametrize("absent", [["c"], ["c", "d"]])
def test_what_expires_on_disk_goes_with_a_sweep(harness: DurableHarness, absent: list[str]) -> None:
    for name in absent:
        away(harness, name=name)
    fill(harness, message_expiry=5)
    harness.publish("t", b"stays", 1, message_expiry=60)
    harness.pass_time(20.0)
    harness.settle()
    assert harness.disk.count("message") == 1
    assert harness.disk.count("delivery") == len(absent)
    assert harness.counters.count("publish/messages/expired") == MESSAGES * len(absent)
    client = harness.persistent()
    (packet,) = [each for each in client.take() if isinstance(each, Publish)]
    assert packet.payload == b"stays"
    assert packet.properties.message_expiry_interval == 40


def test_a_session_that_ends_is_deleted_in_steps(harness: DurableHarness) -> None:
    away(harness)
    away(harness, name="other")
    fill(harness)
    harness.commits = False
    begin_anew(harness)
    left = [harness.disk.count("delivery")]
    while harness.disk.commit_number():
        harness.commit()
        left.append(harness.disk.count("delivery"))
    steps = [before - after for before, after in pairwise(left)]
    assert max(steps) <= pager.STEP_ROWS + HEAD
    harness.commits = True
    harness.settle()
    assert (harness.disk.count("delivery"), harness.disk.count("message")) == (MESSAGES, MESSAGES)
    assert drain(harness.persistent("other")) == numbers()
    assert harness.disk.count("message") == 0


def test_a_crash_in_the_middle_of_that_goes_on_with_it(harness: DurableHarness) -> None:
    away(harness)
    fill(harness)
    harness.commits = False
    begin_anew(harness)
    harness.commit()
    assert harness.disk.count("delivery")
    harness.commits = True
    harness.crash()
    away(harness, name="new")
    fill(harness, 3)
    assert harness.disk.count("delivery") == harness.disk.count("message") == 3
    assert harness.broker.queue_memory.disk_bytes > 0


@pytest.mark.parametrize("page_bytes", [1_500, 1_000_000])
def test_another_member_gets_what_a_session_left_on_disk(
    harness: DurableHarness, monkeypatch: pytest.MonkeyPatch, page_bytes: int
) -> None:
    monkeypatch.setattr(pager, "PAGE_BYTES", page_bytes)
    away(harness, "$share/g/t", "c")
    fill(harness)
    away(harness, "$share/g/t", "d")
    harness.persistent("c", clean_start=True).drop()
    harness.settle()
    assert drain(harness.persistent("d")) == numbers()
    assert harness.disk.count("message") == harness.disk.count("delivery") == 0


def test_a_connection_without_expiry_still_gets_what_waits_on_disk(harness: DurableHarness) -> None:
    away(harness)
    fill(harness)
    client = harness.open()
    client.send(Connect("c", clean_start=False))
    assert drain(client) == numbers()
    client.send(Disconnect())
    assert harness.disk.count("session") == 0


def test_such_a_session_ends_with_a_crash(harness: DurableHarness) -> None:
    away(harness)
    fill(harness)
    client = harness.open()
    client.send(Connect("c", clean_start=False))
    client.take()
    harness.crash()
    assert harness.broker.shares.sessions.total == 0
    assert not harness.persistent("c").connack.session_present
    harness.settle()
    assert harness.disk.count("delivery") == 0


def test_one_sweep_at_a_time(harness: DurableHarness) -> None:
    away(harness)
    fill(harness, message_expiry=5)
    harness.pass_time(6.0)
    harness.broker.store.sweep()
    harness.broker.store.sweep()
    assert len(harness.disk.steps) == 1
    harness.settle()
    assert harness.broker.queue_memory.paged == 0
