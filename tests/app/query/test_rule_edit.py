"""Which rule is meant, of several uplinks, and what a new rule stands for."""

import re
from typing import Any

import pytest

from gateway.app.checks.check import check_configuration
from gateway.app.query.rule_edit import RuleChange, RuleEdit, edit_rule, rule_names
from gateway.config.configuration import Configuration, RuleSettings, UplinkSettings
from gateway.config.errors import ConfigurationError
from gateway.errors import TidegateError
from tests.support.table import table

CLOUD = UplinkSettings(
    "cloud",
    ("mqtt://a",),
    rules=(RuleSettings("a"), RuleSettings("both", uplink=("cloud", "plant"))),
)
PLANT = UplinkSettings("plant", ("mqtt://b",), rules=(RuleSettings("b", "payload.value > 1"),))
BARE = UplinkSettings("bare", ("mqtt://c",))
OTHER = UplinkSettings("other", ("mqtt://d",))


def configuration(*uplinks: UplinkSettings) -> Configuration:
    return Configuration("gateway.toml", "barn", uplinks=uplinks)


def edit(uplinks: tuple[UplinkSettings, ...], **change: Any) -> RuleEdit:
    return edit_rule(configuration(*uplinks), RuleChange(**change), check_configuration)


def name(uplinks: tuple[UplinkSettings, ...], index: int) -> str:
    return rule_names(uplinks)[index].name


THREE = (CLOUD, PLANT, BARE)
B, UNWRITTEN = name(THREE, 2), name(THREE, 3)


@table(
    "uplinks, uplink, rule, place, number, topic",
    [
        (THREE, "cloud", "1", 0, 1, "both"),
        (THREE, "0", "1", 0, 1, "both"),
        (THREE, "plant", "0", 1, 0, "b"),
        (THREE, "1", "0", 1, 0, "b"),
        (THREE, None, B, 1, 0, "b"),
        (THREE, "plant", B, 1, 0, "b"),
        (THREE, "bare", "0", 2, 0, "sensors/#"),
        (THREE, None, UNWRITTEN, 2, 0, "sensors/#"),
        ((*THREE, OTHER), "other", UNWRITTEN, 3, 0, "sensors/#"),
        ((BARE,), None, "0", 0, 0, "sensors/#"),
    ],
)
def test_a_rule_has_a_number_of_its_uplink_or_a_name(
    uplinks: tuple[UplinkSettings, ...],
    uplink: str | None,
    rule: str,
    place: int,
    number: int,
    topic: str,
) -> None:
    found = edit(uplinks, uplink=uplink, rule=rule, set={"qos": 0})
    assert found.old is not None
    assert (found.place, found.number, found.old.placed.rule.topic) == (place, number, topic)
    assert found.new is not None
    assert (found.new.placed.rule.topic, found.new.placed.rule.qos) == (topic, 0)
    assert found.table is not None
    assert found.table["topic"] == topic


@table(
    "uplinks, uplink, rule, said",
    [
        (THREE, None, "0", "uplink must be given; there are cloud, plant, bare"),
        (THREE, "cloud", B, f"rule = '{B}' is not allowed"),
        (THREE, "cloud", "2", "rule = '2' is not allowed"),
        (THREE, "3", "0", "uplink = '3' is not allowed"),
        (THREE, "plnt", "0", 'did you mean "plant"?'),
        (THREE, None, B[:-1] + "x", f'did you mean "{B}"?'),
        ((*THREE, OTHER), None, UNWRITTEN, f"uplink must be given: nobody wrote rule {UNWRITTEN}"),
        (THREE, "cloud", UNWRITTEN, f"uplink must be given: nobody wrote rule {UNWRITTEN}"),
        ((), None, "0", "there is no [uplink]"),
        ((UplinkSettings(None, ("mqtt://a",)),), "x", "0", "there are none with a name"),
    ],
)
def test_a_rule_that_is_not_there_is_told_with_those_that_are(
    uplinks: tuple[UplinkSettings, ...], uplink: str | None, rule: str, said: str
) -> None:
    with pytest.raises(TidegateError, match=re.escape(said)):
        edit(uplinks, uplink=uplink, rule=rule)


def test_a_new_rule_stands_for_the_one_that_nobody_wrote_until_there_is_one() -> None:
    first = edit(THREE, uplink="bare", set={"topic": "c"})
    assert first.old is not None
    assert (first.added, first.old.placed.key, first.old.name) == (True, "", UNWRITTEN)
    second = edit(first.configuration.uplinks, uplink="bare", set={"topic": "d"}, at=0)
    assert second.old is None
    assert [rule.topic for rule in second.configuration.uplinks[2].rules] == ["d", "c"]
    elsewhere = edit(THREE, uplink="bare", set={"topic": "e", "uplink": "plant"})
    assert elsewhere.old is None  # it is for another uplink, and `bare` is as before


def test_when_the_last_rule_goes_the_one_that_nobody_wrote_comes() -> None:
    uplinks = (UplinkSettings(None, ("mqtt://a",), rules=(RuleSettings("a"),)),)
    gone = edit(uplinks, rule="0", remove=True)
    assert gone.old is not None
    assert gone.new is not None
    assert (gone.old.placed.rule.topic, gone.new.placed.key) == ("a", "")
    assert edit(THREE, uplink="cloud", rule="0", remove=True).new is None


def test_only_what_goes_up_is_checked() -> None:
    with pytest.raises(ConfigurationError) as found:
        edit(THREE, uplink="cloud", rule="0", set={"topic": "a/#/b", "lane": "slow", "qos": 3})
    assert str(found.value).count("uplink[0].rule[0].") == 3  # all are told
    with pytest.raises(ConfigurationError, match=r"uplink\[0\]\.rule\[0\]\.uplink = 'plnt'"):
        edit(THREE, uplink="cloud", rule="0", set={"uplink": "plnt"})
