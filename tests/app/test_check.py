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
