"""Trials of rules and a reload: they end with the rules, and know what rules remember since."""

from typing import Any

from tests.app.reload.conftest import Changing
from tests.app.reload.test_broker_part import code_of

REMEMBERS = """
[[uplink]]
directory = "{folder}"
[[uplink.rule]]
topic = "sensors/#"
where = "DEADBAND(payload.value, 5)"
"""
OTHER = '[[uplink.rule]]\ntopic = "orders/#"\n'
TOPICS = "[broker]\nremembered_topics = 10\n"


async def found(changing: Changing, what: str = "rule/trial", **request: Any) -> dict[str, Any]:
    answer = await changing.operator.ask(what, **request)
    assert "trial" in answer, answer
    trial: dict[str, Any] = answer["trial"]
    return trial


async def test_a_trial_ends_when_the_rules_change_and_not_before(changing: Changing) -> None:
    rules = REMEMBERS.format(folder=changing.folder / "landing")
    await changing.start(rules)
    client = await changing.clients.connect("p")
    await found(changing, "rule/try", rule="0", set={"topic": "#"})
    await changing.changed(TOPICS + rules)  # and somebody else watches topics, too
    for topic in ("sensors/x", "elsewhere"):
        assert await code_of(client, topic, b'{"value":20}') < 0x80
    rows = (await changing.operator.ask("topics"))["rows"]
    assert [row["topic"] for row in rows] == ["elsewhere", "sensors/x"]
    assert (await found(changing))["messages"] == 2
    await changing.changed(rules)
    assert await code_of(client, "elsewhere", b'{"value":30}') < 0x80
    trial = await found(changing)
    assert (trial["state"], trial["messages"]) == ("running", 3)
    await changing.changed(rules + OTHER)
    trial = await found(changing)
    assert (trial["state"], trial["reason"]) == ("over", "the rules were changed")
    assert await code_of(client, "sensors/x", b'{"value":90}') < 0x80
    assert (await found(changing))["messages"] == 3


async def test_a_rule_that_stayed_is_tried_with_what_it_remembers(changing: Changing) -> None:
    rules = REMEMBERS.format(folder=changing.folder / "landing")
    await changing.start(rules)
    client = await changing.clients.connect("p")
    assert await code_of(client, "sensors/x", b'{"value":20}') < 0x80
    await changing.changed(rules + OTHER)
    await found(changing, "rule/try", rule="0", set={"where": "DEADBAND(payload.value, 2)"})
    for value in (b"21", b"23", b"24", b"26"):
        assert await code_of(client, "sensors/x", b'{"value":%s}' % value) < 0x80
    trial = await found(changing)
    # 26 is 6 from the 20 that went up before; 23 and 26 are 2 and more from the one before
    assert (trial["old"]["messages"], trial["new"]["messages"]) == (1, 2)
