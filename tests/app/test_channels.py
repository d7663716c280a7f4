import json
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gateway.app.channels import ChannelCommands
from gateway.app.checks.check import check_configuration
from gateway.app.control import Control
from gateway.app.parts import Core, Storage
from gateway.config.configuration import Configuration
from gateway.config.errors import ConfigurationError
from gateway.mqtt.message import Message
from gateway.mqtt.packets import Publish
from gateway.mqtt.reason_codes import ReasonCode
from gateway.settings.broker import BrokerSettings
from gateway.settings.channel import ChannelSettings
from gateway.settings.when_full import WhenFull
from tests.support.broker.broker_harness import Harness
from tests.support.broker.channel_harness import channel_of, consumer, durable, got
from tests.support.broker.durable_broker import DurableHarness


def configured(*channels: ChannelSettings) -> Configuration:
    return Configuration("file", "barn", channels=channels)


def test_two_channels_of_one_name_are_a_mistake() -> None:
    twice = configured(ChannelSettings("a", "b"), ChannelSettings("a#tmp", "c"))
    with pytest.raises(ConfigurationError) as raised:
        check_configuration(twice)
    assert (raised.value.key, raised.value.value) == ("channel[1].name", "a#tmp")


@pytest.mark.parametrize("topic_filter", ["#", "jobs/#", "jobs/+"])
def test_dead_letters_that_would_come_back_are_a_mistake(topic_filter: str) -> None:
    circling = ChannelSettings("a", topic_filter, max_attempts=2, dead_letter_topic="jobs/dead")
    with pytest.raises(ConfigurationError) as raised:
        check_configuration(configured(circling))
    assert (raised.value.key, raised.value.value) == ("channel[0].dead_letter_topic", "jobs/dead")
    check_configuration(
        configured(replace(circling, dead_letter_topic="dead/jobs", topic_filter="jobs/#"))
    )


class Desk:
    """A desk for a broker in memory."""

    def __init__(self, harness: Harness) -> None:
        self.harness = harness
        self.control = Control()
        self.refresh: list[Callable[[], None]] = []
        self.forgotten: list[str] = []
        sys_topics = SimpleNamespace(refresh=self.refresh, forget=self.forgotten.append)
        clock = SimpleNamespace(monotonic=lambda: harness.now)
        run: Any = SimpleNamespace(counters=harness.counters, clock=clock)
        turn: Any = SimpleNamespace(instant=harness.instant)
        self.desk = ChannelCommands(
            run,
            Storage(cast("Any", None), cast("Any", harness.disk), 1),
            Core(harness.broker, turn, []),
            self.control,
            cast("Any", sys_topics),
        )

    def ask(self, words: str, client_id: str = "me", payload: bytes = b"") -> ReasonCode:
        message = Message(f"$CONTROL/tidegate/channel/{words}", payload, client_id=client_id)
        code = self.control.receive(message, [])
        self.harness.pass_time(0)
        return code

    def shown(self) -> dict[str, object]:
        (show,) = self.refresh
        show()
        return {
            name.removeprefix("tidegate/"): value
            for name, value in self.harness.counters.values.items()
            if name.startswith("tidegate/channels")
        }


@pytest.fixture
def harness() -> DurableHarness:
    channel = ChannelSettings("jobs", "t")
    return DurableHarness(BrokerSettings(channels=(channel,)))


def test_commands_are_carried_out(harness: DurableHarness) -> None:
    desk = Desk(harness)
    (channel,) = harness.broker.channels
    assert desk.ask("jobs/pause") == ReasonCode.SUCCESS
    assert desk.shown()["channels/jobs/state"] == "paused"
    client = harness.connect("c")
    client.subscribe("$share/jobs/t", 1)
    harness.publish("t", b"x", 1)
    assert client.take() == []
    assert desk.ask("jobs/resume") == ReasonCode.SUCCESS
    (first,) = client.take()
    assert desk.ask("jobs/requeue", "c") == ReasonCode.SUCCESS
    (again,) = client.take()
    assert isinstance(first, Publish)
    assert isinstance(again, Publish)
    assert again.properties.user_properties[-1] == ("attempt", "2")
    assert desk.ask("jobs/requeue", "c", b"30") == ReasonCode.SUCCESS
    assert client.take() == []
    assert channel.depth == 1
    harness.pass_time(30)
    (later,) = client.take()
    assert isinstance(later, Publish)
    for wrong in (b"x", b"-1", b"86401", b"1" * 100, b"1.5"):
        assert desk.ask("jobs/requeue", "c", wrong) == ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR
    harness.now += 59
    assert desk.ask("jobs/touch", "c") == ReasonCode.SUCCESS
    assert desk.ask("jobs/empty") == ReasonCode.SUCCESS
    assert (channel.depth, channel.in_flight) == (0, 0)
    assert desk.ask("jobs/delete") == ReasonCode.SUCCESS
    assert not len(harness.broker.channels)
    assert desk.forgotten == ["tidegate/channels/jobs/"]


def test_a_topic_filter_is_paused_for_all_channels(
    harness: DurableHarness, caplog: pytest.LogCaptureFixture
) -> None:
    desk = Desk(harness)
    client = harness.connect("c")
    client.subscribe("$share/jobs/t", 1)
    assert desk.ask("pause", payload=b"+") == ReasonCode.SUCCESS
    assert json.loads(str(desk.shown()["channels_paused_filters"])) == ["+"]
    harness.publish("t", b"x", 1)
    assert client.take() == []
    refused = ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR
    for word, payload, why in (
        ("pause", b"a/#/b", "of 'a/#/b'"),
        ("pause", b"", "of ''"),
        ("pause", b"\xff", "of ''"),
        ("resume", b"t", "it is not paused"),
    ):
        caplog.clear()
        assert desk.ask(word, payload=payload) == refused
        assert why in caplog.text
    assert desk.ask("resume", payload=b"+") == ReasonCode.SUCCESS
    assert len(client.take()) == 1
    for number in range(101):
        code = desk.ask("pause", payload=b"%d" % number)
    assert code == refused
    assert "100 are paused" in caplog.text


def test_unknown_channels_and_commands_are_refused(
    harness: DurableHarness, caplog: pytest.LogCaptureFixture
) -> None:
    desk = Desk(harness)
    for words in ("jobs/Pause", "job/pause", "jobs/", "/pause", "pause/x"):
        assert desk.ask(words) == ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR, words
    assert "commands are create, pause, resume, empty, delete, touch, requeue" in caplog.text


def test_figures_are_shown_while_the_channel_is_there(harness: DurableHarness) -> None:
    desk = Desk(harness)
    harness.publish("t", b"x", 1)
    harness.pass_time(2)
    shown = desk.shown()
    assert shown["channels"] == 1
    expected = {
        "state": "open",
        "kind": "durable",
        "filter": "t",
        "consumers": 0,
        "depth": 1,
        "in_flight": 0,
        "oldest_seconds": 2.0,
        "received": 1,
    }
    for name, value in expected.items():
        assert shown[f"channels/jobs/{name}"] == value
    desk.ask("jobs/delete")
    none = {"channels": 0, "channels_refused": 0, "channels_paused_filters": "[]"}
    assert desk.shown() == none


def test_the_depth_of_each_level_is_shown() -> None:
    harness = durable(priority="payload.level")
    for level in (b"high", b"low", b"low", b"urgent"):
        harness.publish("t/a", b'{"level": "%s"}' % level, 1)
    desk = Desk(harness)
    shown = desk.shown()
    names = ("depth", "depth_high", "depth_normal", "depth_low", "bad_priority")
    assert [shown[f"channels/jobs/{each}"] for each in names] == [4, 1, 1, 2, 1]
    assert channel_of(harness).bytes == shown["channels/jobs/bytes"] != 0
    worker = consumer(harness, "worker", receive_maximum=1)
    assert got(worker, acknowledge=False) == '{"level": "high"}'
    code = desk.ask("jobs/requeue", "worker", payload=b"60")
    assert (code, desk.shown()["channels/jobs/depth_high"]) == (ReasonCode.SUCCESS, 1)


def test_a_channel_is_created_changed_and_deleted(harness: DurableHarness) -> None:
    desk = Desk(harness)
    worker = harness.connect("worker")
    worker.subscribe("$share/mail/mail/#", 1)
    assert desk.ask("mail/create", payload=b"mail/#") == ReasonCode.SUCCESS
    harness.publish("mail/1", b"x", 1)
    assert len(worker.take()) == 1
    (channel,) = harness.broker.channels.named("mail")
    assert (channel.in_flight, channel.settings.max_attempts) == (1, 20)
    keys = b'{"filter": "mail/#", "max_attempts": 3}'
    assert desk.ask("mail/create", payload=keys) == ReasonCode.SUCCESS
    assert (channel.in_flight, channel.settings.max_attempts) == (1, 3)
    assert desk.ask("mail/delete") == ReasonCode.SUCCESS
    assert harness.broker.channels.named("mail") == []
    keys = b'{"filter": "mail/#", "temporary": true}'
    assert desk.ask("mail/create", payload=keys) == ReasonCode.SUCCESS
    assert harness.broker.channels.filter_of_queue("$queue/mail") == "$share/mail/mail/#"
    worker.drop()
    harness.pass_time(0)
    assert harness.broker.channels.named("mail") == []
    assert desk.ask("mail/delete") == ReasonCode.SUCCESS
    assert harness.broker.channels.filter_of_queue("$queue/mail") is None
    assert desk.ask("mail/delete") == ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR


@pytest.mark.parametrize(
    ("name", "payload", "why"),
    [
        ("jobs", b"t", "the configuration has a channel of this name"),
        ("mail", b"a/#/b", "filter = 'a/#/b' is not allowed"),
        ("mail", b"$share/a/b", "a topic filter, not shared"),
        ("mail", b"", "filter = '' is not allowed"),
        ("mail", b"{", "JSON: "),
        ("mail", b'{"filter": "a", "max_attempt": 3}', "did you mean max_attempts?"),
        ("mail", b'{"filter": "a/#", "dead_letter_topic": "a/b"}', "not the channel's own"),
        (
            "mail",
            b'{"filter": "a", "priority": "payload >"}',
            "priority = 'payload >' is not allowed",
        ),
        ("ma il", b"a", "name = 'ma il' is not allowed"),
        ("made", b"other", "there is one with the filter made/#"),
        ("made", b'{"filter": "made/#", "temporary": true}', "it has messages"),
        ("more", b"more", "there are 2 channels, as many as may be"),
    ],
)
def test_what_cannot_be_created_is_refused_with_a_reason(
    name: str, payload: bytes, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    channels = (ChannelSettings("jobs", "t"),)
    harness = DurableHarness(BrokerSettings(channels=channels, maximum_channels=2))
    desk = Desk(harness)
    assert desk.ask("made/create", payload=b"made/#") == ReasonCode.SUCCESS
    harness.publish("made/1", b"x", 1)
    code = desk.ask(f"{name}/create", payload=payload)
    assert code == ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR
    assert why in caplog.text


def test_the_configuration_goes_before_what_was_created(harness: DurableHarness) -> None:
    desk, channels = Desk(harness), harness.broker.channels
    desk.ask("mail/create", payload=b'{"filter": "mail/#", "max_attempts": 3}')
    configured = ChannelSettings("jobs", "t"), ChannelSettings("mail", "mail/#", max_attempts=7)
    channels.change(BrokerSettings(channels=configured[:1]), WhenFull.REJECT)
    assert channels.named("mail")[0].settings.max_attempts == 3
    channels.change(BrokerSettings(channels=configured), WhenFull.REJECT)
    assert channels.named("mail")[0].settings.max_attempts == 7


def test_a_consumer_touches_and_requeues_one_message_by_its_id(
    harness: DurableHarness, caplog: pytest.LogCaptureFixture
) -> None:
    desk = Desk(harness)
    client = harness.connect("c")
    client.subscribe("$share/jobs/t", 1)
    (channel,) = harness.broker.channels
    for payload in (b"x", b"y", b"z"):
        harness.publish("t", payload, 1)
    found = [each for each in client.take() if isinstance(each, Publish)]
    ids = [dict(each.properties.user_properties)["id"].encode() for each in found]
    assert desk.ask("jobs/requeue", "c", ids[0]) == ReasonCode.SUCCESS
    (again,) = client.take()
    assert isinstance(again, Publish)
    assert again.payload == b"x"
    assert desk.ask("jobs/requeue", "c", ids[1] + b" 30") == ReasonCode.SUCCESS
    assert (client.take(), channel.depth, channel.in_flight) == ([], 1, 2)
    for wrong in (ids[1], b"0" * 16, ids[2] + b" 86401", ids[2] + b" 1 1", b"\xff"):
        assert desk.ask("jobs/requeue", "c", wrong) == ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR
    assert desk.ask("jobs/touch", "other", ids[2]) == ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR
    assert f"client 'other' has no message {ids[2].decode()}" in caplog.text
    harness.pass_time(30)
    client.take()
    assert desk.ask("jobs/touch", "c", ids[2]) == ReasonCode.SUCCESS
    assert [*channel.deliveries][-1].pending(int(ids[2], 16))  # it times out last


def test_another_topic_filter_leaves_the_old_channel_until_it_is_deleted(
    harness: DurableHarness, caplog: pytest.LogCaptureFixture
) -> None:
    """Which `$queue/<name>` does not mean any more, and `delete` means first."""
    desk, channels = Desk(harness), harness.broker.channels
    harness.publish("t", b"old", 1)
    new = BrokerSettings(channels=(ChannelSettings("jobs", "u/#"),))
    channels.change(new, WhenFull.DROP_OLDEST)
    assert "jobs with the filter t is not configured any more: it exists, with 1 me" in caplog.text
    caplog.clear()
    channels.change(new, WhenFull.DROP_OLDEST)
    assert caplog.text == ""
    harness.publish("u/1", b"new", 1)
    worker = harness.connect("c")
    worker.subscribe("$queue/jobs", 1)
    assert [each.payload for each in worker.take() if isinstance(each, Publish)] == [b"new"]
    assert [each.settings.topic_filter for each in channels.named("jobs")] == ["u/#", "t"]
    assert desk.shown()["channels/jobs/filter"] == "u/#"
    assert desk.ask("jobs/delete") == ReasonCode.SUCCESS
    (left,) = channels
    assert (left.settings.topic_filter, left.in_flight) == ("u/#", 1)
    assert desk.ask("jobs/delete") == ReasonCode.SUCCESS
    assert not len(channels)
