"""Edited rules beside those that are there: what each takes, where they differ, how it ends."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from gateway.app.query import trials as module
from gateway.mqtt.packets import PubAck, Publish
from tests.support.gateway_here import Gateway, started
from tests.support.operator import Operator
from tests.support.ports import free_port
from tests.support.raw_client import Clients, RawClient
from tests.support.table import table

WARM = b'{"value":30}'
COLD = b'{"value":10}'


async def publish(client: RawClient, topic: str, *payloads: bytes) -> list[int]:
    """Publish with QoS 1; return the PUBACKs' reason codes."""
    codes: list[int] = []
    for number, payload in enumerate(payloads, 1):
        await client.send(Publish(topic, payload, 1, packet_id=number))
        answer = await client.take(PubAck)
        codes.append(answer.reason_code)
    return codes


async def tried(operator: Operator, **request: Any) -> dict[str, Any]:
    answer = await operator.ask("rule/try", **request)
    assert "trial" in answer, answer
    trial: dict[str, Any] = answer["trial"]
    return trial


async def found(operator: Operator, **request: Any) -> dict[str, Any]:
    trial: dict[str, Any] = (await operator.ask("rule/trial", **request))["trial"]
    return trial


def watched(gateway: Gateway) -> bool:
    return gateway.broker.watch is not None


async def reported(operator: Operator, key: str, name: str) -> dict[str, Any]:
    """Return what is told of a trial once that has something under this key."""
    for _ in range(1_000):
        answer = await operator.ask("rule/trial", name=name)
        reported = {**answer, **answer.get("trial", {})}
        if reported.get(key):
            return reported
        await asyncio.sleep(0.02)
    raise AssertionError(answer)


async def test_both_rules_are_counted_and_their_differences_kept(
    gateway: Gateway, operator: Operator, clients: Clients
) -> None:
    begun = await tried(operator, name="t", rule="0", set={"where": "payload.value > 5"})
    assert (begun["state"], begun["client"], begun["messages"]) == ("running", "operator", 0)
    assert begun["old"]["rule"].startswith("0@")
    assert begun["old"]["where"] == "payload.value > 20"
    publisher = await clients.connect("p")
    await publish(publisher, "sensors/x", WARM, COLD, b'{"value":1}', b'{"unit":"C"}')
    await publish(publisher, "sensors/y", COLD)
    await publish(publisher, "orders/1", WARM)
    trial = await found(operator, name="t")
    assert trial["messages"] == 5
    assert (trial["old"]["messages"], trial["new"]["messages"]) == (1, 3)
    assert (trial["only_old"], trial["only_new"]) == (0, 2)
    assert (trial["old"]["null"], trial["new"]["null"]) == (1, 1)
    assert trial["new"]["bytes"] == 3 * (len(WARM) + len("sensors/x"))
    assert trial["new"]["bytes_a_day"] > trial["old"]["bytes_a_day"] > 0
    shown = [(each["topic"], each["payload"], each["taken_by"]) for each in trial["differences"]]
    assert shown == [("sensors/x", COLD.decode(), "new"), ("sensors/y", COLD.decode(), "new")]
    rows = (await operator.ask("rules"))["rows"]
    assert rows[0]["counters"]["passed"] == 1  # the trial counts nothing else
    over = await found(operator, name="t", end=True)
    assert (over["state"], over["reason"]) == ("over", "ended by client 'operator'")
    await publish(publisher, "sensors/x", WARM)
    assert (await found(operator, name="t"))["messages"] == 5


async def test_nothing_more_is_sent_or_waits_for_a_trial(
    gateway: Gateway, operator: Operator, clients: Clients
) -> None:
    publisher = await clients.connect("p")
    before = await publish(publisher, "nobody/1", WARM)
    await tried(operator, set={"topic": "nobody/#"})
    assert await publish(publisher, "nobody/1", WARM, WARM) == [*before, *before]
    await publish(publisher, "sensors/x", WARM)
    trial = await found(operator)
    assert (trial["old"], trial["new"]["messages"]) == (None, 2)
    assert [each["taken_by"] for each in trial["differences"]] == ["new", "new"]
    assert gateway.counters.count("tidegate/rules/accepted") == 1
    assert [each["kind"] for each in (await operator.ask("events"))["rows"]] == ["start"]


async def test_a_rule_with_another_topic_and_one_that_goes(
    gateway: Gateway, operator: Operator, clients: Clients
) -> None:
    await tried(operator, name="moved", rule="1", set={"topic": "jobs/#"})
    await tried(operator, name="gone", rule="1", remove=True)
    publisher = await clients.connect("p")
    await publish(publisher, "orders/1", b"1", b"2")
    await publish(publisher, "jobs/1", b"1")
    moved = await found(operator, name="moved")
    assert (moved["old"]["messages"], moved["new"]["messages"]) == (2, 1)
    assert (moved["only_old"], moved["only_new"]) == (2, 1)
    gone = await found(operator, name="gone")
    assert (gone["old"]["messages"], gone["new"]) == (2, None)


async def test_what_an_earlier_rule_takes_neither_takes(
    gateway: Gateway, operator: Operator, clients: Clients
) -> None:
    edit = {"topic": "sensors/#"}
    await tried(operator, name="behind", set=edit)
    await tried(operator, name="before", set=edit, at=0)
    await tried(operator, name="beside", set={**edit, "stream": "other"})
    publisher = await clients.connect("p")
    await publish(publisher, "sensors/x", WARM, COLD)
    taken = {
        name: (await found(operator, name=name))["new"]["messages"]
        for name in ("behind", "before", "beside")
    }
    assert taken == {"behind": 1, "before": 2, "beside": 2}


CHANGING = """
[[listener]]
port = {port}
[[uplink]]
directory = "{folder}"
[[uplink.rule]]
topic = "sensors/#"
where = "DEADBAND(payload.value, 5) AND payload.value > 0"
{more}
"""


@pytest.fixture
async def changing(tmp_path: Path) -> AsyncIterator[Gateway]:
    more = '[history]\nkeep = "1h"'
    text = CHANGING.format(port=free_port(), folder=tmp_path / "l", more=more)
    async with started(tmp_path, text) as made:
        yield made


async def test_the_edited_rule_goes_on_with_what_the_other_remembers(changing: Gateway) -> None:
    port = changing.configuration.listeners[0].port
    operator, clients = await Operator.open(port), Clients(port)
    publisher = await clients.connect("p")
    await publish(publisher, "sensors/x", b'{"value":20}')
    await tried(operator, rule="0", set={"where": "DEADBAND(payload.value, 2)"})
    await publish(publisher, "sensors/x", b'{"value":21}', b'{"value":22}', b'{"value":25}')
    await publish(publisher, "elsewhere", b"1")  # the history has it, and no rule
    trial = await found(operator)
    assert (trial["messages"], trial["old"]["messages"], trial["new"]["messages"]) == (3, 1, 2)
    assert [each["payload"] for each in trial["differences"]] == ['{"value":22}']
    await operator.close()
    await clients.close()


async def test_the_worst_gap_is_known_of_each(
    gateway: Gateway, operator: Operator, clients: Clients
) -> None:
    await tried(operator, rule="0", set={"where": "payload.value > 50"})
    publisher = await clients.connect("p")
    await publish(publisher, "sensors/x", WARM)
    await asyncio.sleep(0.05)
    await publish(publisher, "sensors/x", WARM)
    await asyncio.sleep(0.05)
    await publish(publisher, "sensors/x", WARM)
    trial = await found(operator)
    old, new = trial["old"]["gap"], trial["new"]["gap"]
    assert old["topic"] == new["topic"] == "sensors/x"
    assert 0.05 <= old["seconds"] < new["seconds"]
    assert new["seconds"] >= 0.1


async def test_a_trial_ends_when_its_time_is_over_and_with_its_owner(
    gateway: Gateway, operator: Operator, port: int
) -> None:
    other = await Operator.open(port, "other")
    await tried(other, name="short", rule="0", remove=True, seconds=1)
    assert (await reported(operator, "reason", name="short"))["reason"] == "its time is over"
    await tried(other, name="long", set={"topic": "new/#"}, seconds=3_600)
    assert watched(gateway)
    await other.close()
    assert "there is no trial 'long'" in (await reported(operator, "error", name="long"))["error"]
    assert not watched(gateway)
    assert "there are: none" in await operator.refused("rule/trial", name="short")


async def test_one_request_can_wait_for_the_end(
    gateway: Gateway, operator: Operator, port: int, clients: Clients
) -> None:
    waiting = asyncio.create_task(
        tried(operator, rule="0", set={"where": "payload.value > 5"}, seconds=1, wait=True)
    )
    publisher = await clients.connect("p")
    other = await Operator.open(port, "other")
    await reported(other, "name", name="operator")
    await publish(publisher, "sensors/x", COLD)
    trial = await waiting
    assert (trial["state"], trial["only_new"]) == ("over", 1)
    await other.close()


async def test_trials_are_bounded(
    gateway: Gateway, operator: Operator, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(module.MAXIMUM_TRIALS):
        await tried(operator, name=f"t{number}", rule="0", remove=True)
    said = await operator.refused("rule/try", name="more", rule="0", remove=True)
    assert said == "4 trials run already: 't0', 't1', 't2', 't3'; end one of them"
    await tried(operator, name="t3", rule="1", remove=True)  # in place of the owner's own
    other = await Operator.open(port, "other")
    said = await other.refused("rule/try", name="t1", rule="0", remove=True)
    assert said == "trial 't1' is one of client 'operator'"
    await found(other, name="t1", end=True)
    await tried(other, name="more", rule="0", remove=True)
    assert "there are: 't0', 't2', 't3', 'more'" in await other.refused("rule/trial", name="t1")
    await other.close()


async def test_a_message_is_kept_cut(
    gateway: Gateway, operator: Operator, clients: Clients
) -> None:
    await tried(operator, name="t", set={"topic": "big/#"})
    publisher = await clients.connect("p")
    await publish(publisher, "big/" + "x" * 2_000, b"\xff" * 2_000)
    await publish(publisher, "big/1", *[b"%d" % number for number in range(30)])
    trial = await found(operator, name="t")
    assert (trial["only_new"], trial["untracked"], len(trial["differences"])) == (31, 1, 20)
    assert [each["number"] for each in trial["differences"]] == list(range(12, 32))
    await tried(operator, name="t", set={"topic": "big/#"})
    await publish(publisher, "big/" + "x" * 2_000, b"\xff" * 2_000)
    (kept,) = (await found(operator, name="t"))["differences"]
    assert (len(kept["topic"]), kept["size"]) == (256, 2_000)
    assert len(kept["payload_base64"]) == 344


@table(
    "edit, said",
    [
        (
            {"rule": "0", "set": {"where": "payload.value >"}},
            "uplink.rule[0].where = 'payload.value >' is not allowed: position 15: ",
        ),
        (
            {"rule": "0", "set": {"topic": "a/#/b"}},
            "uplink.rule[0].topic = 'a/#/b' is not allowed: ",
        ),
        (
            {"rule": "0", "set": {"wher": "TRUE"}},
            "uplink.rule[0].wher = 'TRUE' is not allowed: unknown key; there are ",
        ),
        ({"rule": "0", "set": {"wher": "TRUE"}}, "did you mean where?"),
        ({"rule": "0", "set": {"topic": None}}, "uplink.rule[0].topic: must be given"),
        (
            {"rule": "0", "set": {"uplink": "plant"}},
            "the name of an [[uplink]]; there are none with a name",
        ),
        (
            {"rule": "1", "set": {"topic": "sensors/#", "target": "x"}},
            "for the same topics and stream",
        ),
        ({"rule": "2"}, "rule = '2' is not allowed: the number or name of a rule; there are 0@"),
        (
            {"rule": "0@00000000"},
            "rule = '0@00000000' is not allowed: the number or name of a rule; ",
        ),
        (
            {"uplink": "plant", "rule": "0"},
            "uplink = 'plant' is not allowed: the name of an [[uplink]]; ",
        ),
        (
            {"rule": "0", "set": {"qos": 1}, "remove": True},
            "remove is for a rule that is written, and without",
        ),
        ({"remove": True}, "remove is for a rule that is written"),
        ({}, "uplink.rule[2].topic: must be given"),
        ({"rule": "0", "set": []}, "set is [], not an object"),
        ({"rule": "0", "remove": 1}, "remove is 1, not true or false"),
        ({"rule": "0", "seconds": 0}, "seconds is 0, not a whole number 1 to 3600"),
        ({"rule": "0", "name": "x" * 81}, "name has 81 characters, not at most 80"),
    ],
)
async def test_what_cannot_be_tried_is_refused_in_the_words_of_the_check(
    gateway: Gateway, operator: Operator, edit: dict[str, Any], said: str
) -> None:
    assert said in await operator.refused("rule/try", **edit)
