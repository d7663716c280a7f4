"""A rule is edited on live messages, and the command that applies it is told."""

import argparse
import shlex

import pytest

from gateway.cli.rule import add_edit, request_of
from tests.support.silent_client import Bench
from tui.screens.rule import SECONDS, TRIAL, filter_problem

RULE = {"rule": "0@1a2b", "uplinks": ["cloud"], "topic": "sensors/#", "where": "payload.value > 20"}


def side(messages: int, bytes_a_day: int) -> dict[str, object]:
    gap = {"topic": "sensors/n1/\x1b[2Jt", "seconds": 61.0}
    return {"messages": messages, "bytes_a_day": bytes_a_day, "gap": gap}


def trial(**more: object) -> dict[str, object]:
    found: dict[str, object] = {
        "name": TRIAL, "state": "running", "reason": "", "seconds": 300, "elapsed_seconds": 12.0,
        "messages": 100, "old": side(60, 11_400_000), "new": side(16, 4_300_000),
        "only_old": 45, "only_new": 1,
        "differences": [
            {"number": 1, "time": 900_000, "topic": "sensors/n1/t", "size": 2, "payload": "21",
             "taken_by": "old"},
            {"number": 2, "time": 900_000, "topic": "sensors/n2/t", "size": 3, "taken_by": "new"},
        ],
    }  # fmt: skip
    return {"trial": found | more}


@pytest.fixture
def bench() -> Bench:
    made = Bench()
    made.client.answers["queues"] = {"rows": [{"kind": "uplink", "name": "cloud", "depth": 0}]}
    made.client.answers["rules"] = {"rows": [RULE]}
    made.client.answers["rule/try"] = made.client.answers["rule/trial"] = trial()
    made.press("4")
    made.pass_time(6)
    made.screen()
    made.press("e")
    return made


def edit(bench: Bench, where: str) -> None:
    bench.press("e", "ctrl+u")
    bench.type(where)
    bench.pass_time(1)


def test_an_edit_is_checked_while_it_is_typed_and_tried(bench: Bench) -> None:
    assert "rule 0@1a2b" in bench.screen()
    bench.press("e", "ctrl+u", *"payload.value >")
    assert "accepted" not in bench.screen(160, 30)
    bench.press("enter")
    assert not any(what == "rule/try" for what, _ in bench.client.queried)
    edit(bench, "payload.value > 60")
    request = next(request for what, request in bench.client.queried if what == "rule/try")
    expected = {"rule": "0@1a2b", "set": {"where": "payload.value > 60"}, "name": TRIAL}
    assert expected.items() <= request.items()
    assert request["seconds"] == SECONDS
    text = bench.screen(100, 40)
    for part in ("60  60 %", "16  16 %", "11.4 MB", "4.3 MB", "saves 7.1 MB", "1m 01s sensors/n1/·",
                 "running for 12s of 5m 00s", "- now only    sensors/n1/t  21",
                 "+ edited only sensors/n2/t  3 bytes"):  # fmt: skip
        assert part in text, part


@pytest.mark.parametrize("where", ["payload.value > 60 AND $unit = 'it''s'", "-payload.value < 1"])
def test_the_command_says_the_same_edit(bench: Bench, where: str) -> None:
    edit(bench, where)
    bench.press("t", "ctrl+u")
    bench.type("sensors/+/t")
    bench.press("y")
    words = shlex.split(bench.copied[-1])
    assert words[:3] == ["tidegate", "rule", "apply"]
    parser = argparse.ArgumentParser()
    add_edit(parser)
    request = request_of(parser.parse_args(words[3:]))
    tried = [request for what, request in bench.client.queried if what == "rule/try"][-1]
    assert request["set"] == tried["set"]
    assert request["rule"] == tried["rule"]
    edit(bench, "")
    bench.press("y")
    assert "--unset where" in bench.copied[-1]


def test_a_trial_that_is_over_refused_or_left(bench: Bench) -> None:
    edit(bench, "payload.value > 60")
    bench.client.answers["rule/trial"] = trial(state="over", reason="its time is over")
    bench.pass_time(2)
    assert "over after 12s: its time is over" in bench.screen()
    count = len([what for what, _ in bench.client.queried if what == "rule/trial"])
    bench.pass_time(9)
    assert len([what for what, _ in bench.client.queried if what == "rule/trial"]) == count
    bench.client.answers["rule/try"] = {"error": "four trials run already"}
    bench.press("R")
    assert "✕ four trials run already" in bench.screen()
    bench.client.answers["rule/try"] = bench.client.answers["rule/trial"] = trial()
    bench.press("R")
    assert "running for 12s" in bench.screen()
    bench.press("escape")
    assert ("rule/trial", {"name": TRIAL, "end": True}) in bench.client.queried


def test_without_a_trial_nothing_is_asked(bench: Bench) -> None:
    bench.press("e", "enter", "escape")
    assert not any(what.startswith("rule/") for what, _ in bench.client.queried)


def test_a_rule_among_several_is_that_at_the_cursor(bench: Bench) -> None:
    other = {**RULE, "rule": "1@77aa", "topic": "orders/#", "where": None}
    bench.client.answers["rules"] = {"rows": [RULE, other]}
    bench.press("escape")
    bench.pass_time(6)
    bench.press("e", "down", "e")
    assert "rule 1@77aa" in bench.screen()
    assert "no where: all" in bench.screen()


@pytest.mark.parametrize("words", ["", "a/b#", "a/#/b", "a+/b", "a/\0"])
def test_a_topic_filter_that_is_none(words: str) -> None:
    assert "accepted" not in filter_problem(words)
