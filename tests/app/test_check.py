from pathlib import Path

import pytest

from gateway.app.check import check_configuration
from gateway.config.errors import ConfigurationError
from gateway.config.load import load

MISTAKES = [
    ("a/#/b", None, "uplink.rule[1].topic", "a/#/b", "has a # that is not its whole last level"),
    ("a/b+", None, "uplink.rule[1].topic", "a/b+", "has a + that is not a whole level"),
    ("$share/g/a", None, "uplink.rule[1].topic", "$share/g/a", "a rule's topic is not shared"),
    ("a", "payload.value >", "uplink.rule[1].where", "payload.value >", "position 15: "),
    ("a", "((", "uplink.rule[1].where", "((", "position 2: "),
]


@pytest.mark.parametrize(("topic", "where", "key", "value", "allowed"), MISTAKES)
def test_a_rule_that_cannot_work_is_named(
    tmp_path: Path, topic: str, where: str | None, key: str, value: str, allowed: str
) -> None:
    path = tmp_path / "gateway.toml"
    text = f"[[uplink.rule]]\ntopic = 'fine/#'\n[[uplink.rule]]\ntopic = '{topic}'\n"
    path.write_text(text + (f"where = '{where}'" if where else ""))
    with pytest.raises(ConfigurationError) as raised:
        check_configuration(load(path))
    assert (raised.value.file, raised.value.key, raised.value.value) == (str(path), key, value)
    assert allowed in raised.value.allowed


def test_rules_that_can_work(tmp_path: Path) -> None:
    path = tmp_path / "gateway.toml"
    path.write_text("[[uplink.rule]]\ntopic = '#'\nwhere = 'a = 1'\n[[uplink.rule]]\ntopic = 'a'")
    check_configuration(load(path))
    path.write_text("")
    check_configuration(load(path))


FILTER_MISTAKES = [
    ("a/#/b", "qos = 1", "filter", "a/#/b", "has a # that is not its whole last level"),
    ("$share/g/a", "qos = ", "where", "qos = ", "position 6: "),
    ("a", "CHANGED(a)", "where", "CHANGED(a)", "position 0: CHANGED needs the memory of an uplink"),
]


@pytest.mark.parametrize(("topic_filter", "where", "key", "value", "allowed"), FILTER_MISTAKES)
def test_a_subscription_filter_that_cannot_work_is_named(
    tmp_path: Path, topic_filter: str, where: str, key: str, value: str, allowed: str
) -> None:
    path = tmp_path / "gateway.toml"
    table = "[[subscription_filter]]\nclient = '{}'\nfilter = '{}'\nwhere = '{}'\n"
    path.write_text(table.format("*", "a", "TRUE") + table.format("*", topic_filter, where))
    with pytest.raises(ConfigurationError) as raised:
        check_configuration(load(path))
    assert (raised.value.key, raised.value.value) == (f"subscription_filter[1].{key}", value)
    assert allowed in raised.value.allowed


def test_no_more_subscription_filters_than_are_looked_at(tmp_path: Path) -> None:
    path = tmp_path / "gateway.toml"
    table = "[[subscription_filter]]\nclient = '*'\nfilter = 'a'\nwhere = 'TRUE'\n"
    path.write_text(table * 1_000)
    check_configuration(load(path))
    path.write_text(table * 1_001)
    with pytest.raises(ConfigurationError, match="= 1001 is not allowed: at most 1000 of"):
        check_configuration(load(path))


def test_a_rule_may_remember(tmp_path: Path) -> None:
    path = tmp_path / "gateway.toml"
    path.write_text("[[uplink.rule]]\ntopic = 'a'\nwhere = 'DEADBAND(payload.t, 1) OR EVERY(60)'")
    check_configuration(load(path))


DURABILITY_MISTAKES = [
    ("a/#/b", "has a # that is not its whole last level"),
    ("$share/g/a", "messages are not shared, subscriptions are"),
]


@pytest.mark.parametrize(("topic", "allowed"), DURABILITY_MISTAKES)
def test_a_durability_that_cannot_work_is_named(tmp_path: Path, topic: str, allowed: str) -> None:
    path = tmp_path / "gateway.toml"
    path.write_text(
        "[[durability]]\nclient = '*'\nclass = 'commit'\n"
        f"[[durability]]\ntopic = '{topic}'\nclass = 'memory'\n"
    )
    with pytest.raises(ConfigurationError) as raised:
        check_configuration(load(path))
    assert (raised.value.key, raised.value.value) == ("durability[1].topic", topic)
    assert allowed in raised.value.allowed


def test_no_more_durability_entries_than_are_looked_at(tmp_path: Path) -> None:
    path = tmp_path / "gateway.toml"
    path.write_text("[[durability]]\nclient = 'a'\nclass = 'memory'\n" * 101)
    with pytest.raises(ConfigurationError) as raised:
        check_configuration(load(path))
    assert (raised.value.key, raised.value.value) == ("durability", 101)


def test_a_window_that_is_none_is_named(tmp_path: Path) -> None:
    path = tmp_path / "gateway.toml"
    path.write_text(
        "[uplink]\nurl = 'mqtt://fleet'\nschedule = ['0 2 * * * for 1h', '0 25 * * * for 1h']\n"
    )
    with pytest.raises(ConfigurationError, match=r"schedule\[1\].*an? hour from 0 to 23"):
        check_configuration(load(path))
