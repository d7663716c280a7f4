"""Targets of rules: their topics, RETAIN, overlapping rules, and plain messages."""

import re
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from gateway.app.checks.check import check_configuration
from gateway.config.errors import ConfigurationError
from gateway.config.load import read
from gateway.mqtt.codec.fields import write_binary
from gateway.settings.uplink import RuleSettings
from gateway.uplink.rules.targets import (
    KNOWN_TOPICS,
    LONGEST_KNOWN,
    Target,
    Targets,
    TopicBounds,
    overlap,
)
from tests.support.disk.storage import Store, until
from tests.support.fleet.fleet_broker import FleetBroker
from tests.support.fleet.uplinks import add_rows, running, uplink_settings
from tests.support.table import table

TARGETS = (
    RuleSettings(
        "sensors/+/temperature", stream="main", target="plant/{gateway}/{2}/{3+}", retain=True
    ),
    RuleSettings("sensors/#", stream="main"),
    RuleSettings("#", stream="slow", target="slow/{topic}"),
)


@table(
    "stream, topic, target, retain",
    [
        ("main", "sensors/n1/temperature", b"plant/barn/n1/temperature", True),
        ("main", "sensors/n1/humidity", b"tidegate/barn/data/sensors/n1/humidity", False),
        ("slow", "sensors/n1/temperature", b"slow/sensors/n1/temperature", False),
        ("gone", "x", b"tidegate/barn/data/x", False),
    ],
)
def test_the_first_rule_of_stream_and_topic_counts(
    stream: str, topic: str, target: bytes, retain: bool
) -> None:
    targets = Targets(uplink_settings(targets=TARGETS))
    expected = Target(write_binary(target), 0x32, retain)
    assert targets[stream, topic] == targets[stream, topic] == expected


def test_only_so_many_short_targets_are_known() -> None:
    targets = Targets(uplink_settings())
    for number in range(KNOWN_TOPICS + 1):
        _ = targets["main", str(number)]
    assert list(targets) == [("main", str(KNOWN_TOPICS))]
    long = "t" * LONGEST_KNOWN
    assert targets["main", long].topic.endswith(long.encode())
    assert len(targets) == 1


@table(
    "first, second, both",
    [
        ("a/b", "a/b", True),
        ("a/+", "a/b", True),
        ("a/+/c", "+/b/c", True),
        ("a/#", "a", True),
        ("a/#", "b/#", False),
        ("#", "a/b", True),
        ("#", "$SYS/a", False),
        ("+/a", "$SYS/a", False),
        ("a/b", "a/b/c", False),
        ("a/b", "a/c", False),
        ("a/+/#", "a", False),
    ],
)
def test_filters_overlap(first: str, second: str, both: bool) -> None:
    assert overlap(first, second) == overlap(second, first) == both


@pytest.fixture
async def fleet() -> FleetBroker:
    broker = FleetBroker()
    await broker.start()
    return broker


@pytest.mark.parametrize("speaks_5", [True, False])
async def test_messages_go_to_the_target(store: Store, fleet: FleetBroker, speaks_5: bool) -> None:
    fleet.speaks_5 = speaks_5
    settings = uplink_settings(fleet.port, targets=TARGETS, plain=True)
    add_rows(store, 1, 1, retain=True, topic="sensors/n1/temperature")
    add_rows(store, 2, 2, retain=True, topic="sensors/n1/humidity")
    async with running(store, settings):
        await until(lambda: store.outbox.rows == 0)
    sent = [each for each in fleet.publishes if not each.topic.endswith("/status")]
    assert [(each.topic, each.retain) for each in sent] == [
        ("plant/barn/n1/temperature", True),
        ("tidegate/barn/data/sensors/n1/humidity", False),
    ]
    assert all(bool(each.properties.user_properties) == speaks_5 for each in sent)
    await fleet.stop()


def test_one_stream_and_topic_has_one_target(tmp_path: Path) -> None:
    file = tmp_path / "gateway.toml"
    rules = """
        [gateway]
        id = "barn"
        [uplink]
        [[uplink.rule]]
        topic = "a/#"
        target = "{topic}"
        [[uplink.rule]]
        topic = "a/b"
        stream = "STREAM"
    """
    file.write_text(rules.replace("STREAM", "other"))
    check_configuration(*read(file))
    file.write_text(rules.replace("STREAM", "main"))
    with pytest.raises(ConfigurationError, match="that of the rule for a/#"):
        check_configuration(*read(file))


async def test_a_topic_that_is_too_long_is_given_up_and_named(
    store: Store, fleet: FleetBroker, caplog: pytest.LogCaptureFixture
) -> None:
    targets = (RuleSettings("sensors/#", stream="main", target="plant/{2+}"),)
    settings = uplink_settings(
        fleet.port, targets=targets, maximum_topic_bytes=19, maximum_topic_levels=3
    )
    add_rows(store, 1, 1, topic="sensors/n1/temperature")
    add_rows(store, 2, 2, topic="sensors/n1/t")
    add_rows(store, 3, 3, topic="sensors/n1/t/2")
    async with running(store, settings) as uplink:
        await until(lambda: store.outbox.rows == 0)
        assert uplink.state == "connected"
    sent = [each.topic for each in fleet.publishes if not each.topic.endswith("/status")]
    assert sent == ["plant/n1/t"]
    assert store.counters.count("tidegate/uplink/reconnects") == 0
    problem = "(0x90): its topic at the fleet has 20 bytes, and maximum_topic_bytes is 19"
    assert f"(sensors/n1/temperature, 11 bytes) was rejected {problem}" in caplog.text
    assert caplog.text.count("rejected") == 1  # a line for each code and connection
    await fleet.stop()


@table(
    "topic, bounds, problem",
    [
        ("", TopicBounds(65_535, None), "its topic at the fleet is empty"),
        ("a" * 65_535, TopicBounds(65_535, None), ""),
        (
            "a" * 65_536,
            TopicBounds(65_535, None),
            "its topic at the fleet has 65,536 bytes, and maximum_topic_bytes is 65,535",
        ),
        ("äb", TopicBounds(3, None), ""),
        (
            "äbc",
            TopicBounds(3, None),
            "its topic at the fleet has 4 bytes, and maximum_topic_bytes is 3",
        ),
        ("/a/", TopicBounds(9, 3), ""),
        (
            "/a/b/",
            TopicBounds(9, 3),
            "its topic at the fleet has 4 levels, and maximum_topic_levels is 3",
        ),
    ],
)
def test_bounds(topic: str, bounds: TopicBounds, problem: str) -> None:
    assert bounds.problem(topic.encode()) == problem


@table(
    "rule, key",
    [
        ('topic = "a/#"\ntarget = "plant/{2+}/{2}"', ""),
        ('topic = "a/+/+/b"\ntarget = "p{2+}"', ""),
        ('topic = "+/#"\ntarget = "{3}"', ""),  # empty for some messages, not for all
        ('topic = "a/+/+/b"\ntarget = "plant/{topic}"', "uplink.rule[0].target"),
        ('topic = "a"\ntarget = "plant/{gateway}-{gateway}-{gateway}-"', "uplink.rule[0].target"),
        ('topic = "a/b"', "uplink.rule[0].topic"),
        (None, "uplink.prefix"),
    ],
)
def test_a_rule_none_of_whose_messages_fits_is_a_mistake(rule: str | None, key: str) -> None:
    text = '[gateway]\nid = "barn"\n[uplink]\nurl = "mqtt://h"\n'
    text += "maximum_topic_bytes = 20\nmaximum_topic_levels = 4\n"
    if rule is not None:
        text += f"[[uplink.rule]]\n{rule}\n"
    with TemporaryDirectory() as folder:
        file = Path(folder) / "gateway.toml"
        file.write_text(text)
        if not key:
            check_configuration(*read(file))
            return
        with pytest.raises(ConfigurationError, match=re.escape(key)) as raised:
            check_configuration(*read(file))
    assert "a shorter topic: of its shortest message, its topic" in str(raised.value)
