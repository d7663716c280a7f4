"""Targets of rules: their topics, RETAIN, overlapping rules, and plain messages."""

from pathlib import Path

import pytest

from gateway.app.checks.check import check_configuration
from gateway.config.errors import ConfigurationError
from gateway.config.load import read
from gateway.uplink.targets import Target, Targets, overlap
from tests.support.fleet_broker import FleetBroker
from tests.support.storage import Store, outbox_row, until
from tests.support.table import table
from tests.support.uplinks import add_rows, running, uplink_settings

TARGETS = (
    Target("main", "sensors/+/temperature", "plant/{gateway}/{2}/{3+}", retain=True),
    Target("main", "sensors/#"),
    Target("slow", "#", "slow/{topic}"),
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
    targets = Targets(TARGETS, "barn", "tidegate/barn/data/")
    row = outbox_row(1, stream, topic=topic)
    assert targets.of(row) == targets.of(row) == (target, retain, 1)


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
