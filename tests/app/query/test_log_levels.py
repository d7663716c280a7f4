"""What the log says is changed while the gateway runs."""

import logging
from collections.abc import Iterator

import pytest

from gateway.settings.log import LogSettings
from gateway.telemetry.logs import set_levels
from tests.support.gateway_here import Gateway
from tests.support.operator import Operator


@pytest.fixture(autouse=True)
def levels_as_they_were() -> Iterator[None]:
    before = logging.getLogger().level
    set_levels(LogSettings())
    yield
    set_levels(LogSettings())
    logging.getLogger().setLevel(before)


async def test_a_part_writes_from_another_level_on(gateway: Gateway, operator: Operator) -> None:
    levels = (await operator.ask("log/level"))["levels"]
    assert (levels["all"], levels["broker"]) == ("info", None)
    answer = await operator.ask("log/level", part="broker", level="debug")
    assert answer["levels"] == {**levels, "broker": "debug"}
    assert logging.getLogger("gateway.routing.router").isEnabledFor(logging.DEBUG)
    assert not logging.getLogger("gateway.uplink.uplink").isEnabledFor(logging.DEBUG)
    (event, *_) = (await operator.ask("events", kind="order"))["rows"]
    assert event["subject"] == "log: lines of debug and above are written of broker"


async def test_what_is_wrong_names_what_is_allowed(operator: Operator) -> None:
    assert "needs part and level" in await operator.refused("log/level", part="broker")
    assert "needs part and level" in await operator.refused("log/level", level="debug")
    reason = await operator.refused("log/level", part="mqtt", level="debug")
    assert reason.startswith("part is 'mqtt', not one of all, app, bridges, broker, ")
    reason = await operator.refused("log/level", part="all", level="loud")
    assert reason == "level is 'loud', not one of debug, info, warning, error"
