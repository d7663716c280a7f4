"""What `$SYS` says of subscription filters."""

import itertools
import json

import pytest

from gateway.mqtt.packets import Subscribe, SubscriptionRequest
from gateway.mqtt.properties import Properties
from gateway.settings.broker import BrokerSettings, SubscriptionFilter
from gateway.telemetry.sys_topics import BUSIEST, WhereFigures
from tests.support.broker.broker_harness import Harness

ATTACHED = SubscriptionFilter("panel", "a", "NOT payload.t <= 2")


@pytest.fixture
def harness() -> Harness:
    harness = Harness(BrokerSettings(subscription_filters=(ATTACHED,)))
    harness.broker.budget.timer = itertools.count(0, 2_000).__next__
    return harness


def subscribe(harness: Harness, client_id: str, where: str | None) -> None:
    properties = Properties(user_properties=() if where is None else (("$where", where),))
    harness.connect(client_id).send(Subscribe(1, [SubscriptionRequest("a", 0)], properties))


def shown(harness: Harness) -> dict[str, object]:
    figures = WhereFigures(harness.broker, harness.counters)
    figures.refresh()
    figures.update()
    prefix = "tidegate/where/"
    values = harness.counters.values
    return {name.removeprefix(prefix): values[name] for name in values if name.startswith(prefix)}


def test_before_anything_is_evaluated(harness: Harness) -> None:
    subscribe(harness, "c", "NOT payload.t <= 1")
    assert shown(harness) == {
        "evaluated": 0,
        "passed": 0,
        "filtered": 0,
        "null": 0,
        "slow": 0,
        "over_budget": 0,
        "promoted": 0,
        "expressions": 1,
        "slowest": "",
        "slowest_microseconds": "0.0",
        "busiest": "[]",
    }


def test_filters_of_clients_and_of_the_configuration(harness: Harness) -> None:
    subscribe(harness, "c", "NOT payload.t <= 1")
    subscribe(harness, "panel", None)
    for payload in (b'{"t":2}', b'{"t":3}', b"{"):
        harness.publish("a", payload)
    figures = shown(harness)
    counts = {name: figures[name] for name in ("evaluated", "passed", "filtered", "null")}
    assert counts == {"evaluated": 6, "passed": 3, "filtered": 3, "null": 2}
    assert (figures["slowest"], figures["slowest_microseconds"]) == ("NOT payload.t <= 1", "2.0")
    common = {"evaluated": 3, "null": 1, "over_budget": 0, "microseconds": 2.0}
    assert json.loads(str(figures["busiest"])) == [
        {"where": "NOT payload.t <= 1", "passed": 2, "filtered": 1, **common},
        {"where": "NOT payload.t <= 2", "passed": 1, "filtered": 2, **common},
    ]


def test_only_the_busiest_are_shown(harness: Harness) -> None:
    for number in range(BUSIEST + 1):
        subscribe(harness, f"c{number}", f"NOT payload.t <= {number}")
        harness.publish("a", b'{"t":3}')
    busiest = json.loads(str(shown(harness)["busiest"]))
    assert [each["where"] for each in busiest] == [
        f"NOT payload.t <= {each}" for each in range(BUSIEST)
    ]
    assert [each["evaluated"] for each in busiest] == [6, 5, 4, 3, 2]
