from gateway.broker.channels.moving import back, move_next, to_channel
from gateway.broker.publishing.expiry import SWEEP_INTERVAL
from gateway.mqtt.packets import Publish
from gateway.mqtt.properties import Properties
from gateway.settings.broker import BrokerSettings
from gateway.settings.channel import ChannelSettings
from tests.support.broker.channel_harness import channel_of, got, messages, publish
from tests.support.broker.durable_broker import DurableHarness

LETTER = (("topic", "t/a"), ("channel", "jobs"), ("attempt", "5"))


def two(**fields: object) -> DurableHarness:
    jobs = ChannelSettings("jobs", "t/#", **fields)  # type: ignore[arg-type]  # by name
    return DurableHarness(BrokerSettings(channels=(jobs, ChannelSettings("dead", "dead"))))


def test_a_message_moves_with_no_attempts_and_is_there_after_a_crash() -> None:
    harness = two()
    jobs, dead = channel_of(harness), channel_of(harness, "dead")
    publish(harness, "abc")
    client = harness.connect("c", receive_maximum=2)
    client.subscribe("$queue/jobs", 1)
    assert len([*messages(client)]) == 2
    harness.broker.channels.pause(jobs)
    client.drop()
    harness.pass_time(0)  # two came back
    for _ in range(3):
        assert move_next(jobs, to_channel(dead), harness.now) is dead
    assert move_next(jobs, to_channel(dead), harness.now) is None
    harness.pass_time(2)
    harness.crash()
    assert (channel_of(harness).depth, channel_of(harness, "dead").depth) == (0, 3)
    client = harness.connect("c")
    client.subscribe("$queue/dead", 1)
    found = [*messages(client)]
    assert {each.properties.user_properties[-1] for each in found} == {("attempt", "1")}
    assert {each.topic for each in found} == {"t/a"}


def test_messages_that_are_read_from_disk_are_waited_for() -> None:
    harness = two(memory_messages=1)
    jobs, dead = channel_of(harness), channel_of(harness, "dead")
    publish(harness, "abcdefgh")
    waits = 0
    while jobs.depth:
        if move_next(jobs, to_channel(dead), harness.now) is None:
            jobs.page_in()
            harness.pass_time(1)
            waits += 1
            assert waits < 20
    client = harness.connect("c")
    client.subscribe("$queue/dead", 1)
    assert got(client) == "abcdefgh"


def test_a_full_channel_ends_the_moves() -> None:
    harness = two(maximum_messages=1)
    publish(harness, "ab", "dead")
    jobs, dead = channel_of(harness), channel_of(harness, "dead")
    assert move_next(dead, to_channel(jobs), harness.now) is jobs
    assert move_next(dead, to_channel(jobs), harness.now) is None
    assert (jobs.depth, dead.depth) == (1, 1)


def test_what_is_no_dead_letter_goes_to_the_end_of_its_own_queue() -> None:
    harness = two()
    jobs, dead = channel_of(harness), channel_of(harness, "dead")
    wrong = [
        (),
        LETTER[1:],
        (LETTER[0], ("channel", "gone"), LETTER[2]),
        (("topic", "t/#"), *LETTER[1:]),
    ]
    publisher = harness.connect("p")
    for number, said in enumerate([*wrong, (("own", "x"), *LETTER)]):
        properties = Properties(user_properties=said)
        publisher.send(Publish("dead", b"%d" % number, 1, packet_id=9, properties=properties))
    find = back(harness.broker.channels.named, lambda: harness.instant)
    found = [move_next(dead, find, harness.now) for _ in range(5)]
    assert found == [dead, dead, dead, dead, jobs]
    client = harness.connect("c")
    client.subscribe("$queue/jobs", 1)
    (job,) = messages(client)
    assert (job.topic, job.payload) == ("t/a", b"4")
    assert job.properties.user_properties[0] == ("own", "x")
    client.subscribe("$queue/dead", 1)
    assert got(client) == "0123"


def test_a_letter_that_was_too_old_returns_with_a_new_age() -> None:
    """Also after a restart, which knows ages by the wall clock."""
    harness = two(maximum_age=100.0, dead_letter_expired=True, dead_letter_topic="dead")
    publish(harness, "a")
    harness.pass_time(100 + SWEEP_INTERVAL)
    jobs, dead = channel_of(harness), channel_of(harness, "dead")
    assert (jobs.depth, dead.depth) == (0, 1)
    find = back(harness.broker.channels.named, lambda: harness.instant)
    assert move_next(dead, find, harness.now) is jobs
    harness.pass_time(80)
    assert (jobs.depth, dead.depth) == (1, 0)
    harness.crash()
    client = harness.connect("c")
    client.subscribe("$queue/jobs", 1)
    assert got(client) == "a"


def test_the_windows_of_consumers_are_shown() -> None:
    harness = two(inflight_timeout=5)
    client = harness.connect("c", receive_maximum=3)
    client.subscribe("$queue/jobs", 1)
    other = harness.connect("other")
    other.subscribe("$queue/jobs", 1)
    harness.persistent("away").subscribe("$share/jobs/t/a", 1)
    harness.clients[-1].drop()
    publish(harness, "ab")
    windows = channel_of(harness).consumers.windows()
    assert [each.client for each in windows] == ["c", "other", "away"]
    assert [each.connected for each in windows] == [True, True, False]
    assert [(each.in_flight, each.late, each.used) for each in windows] == [
        *((1, 0, 1), (1, 0, 1), (0, 0, 0))
    ]
    assert windows[0].limit == 3
    assert windows[2].filter == "$share/jobs/t/a"
    harness.pass_time(5)
    assert [each.late for each in channel_of(harness).consumers.windows()] == [1, 1, 0]
