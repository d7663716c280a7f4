"""A board without a clock of its own learns the time while messages wait."""

import json
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from gateway.config.load import load
from gateway.mqtt.message import Message
from gateway.mqtt.reason_codes import ReasonCode
from tests.support.clocks import SetClock
from tests.support.disk.storage import until
from tests.support.gateway_here import Gateway
from tests.support.ports import free_port

CONFIG = """
[gateway]
id = "barn"
[[listener]]
port = {port}
[uplink]
directory = "{landing}"
[[uplink.stream]]
name = "main"
maximum_age = "1d"
"""

WRONG = 1_600_000_000_000
"""Milliseconds: a day of 2020, as a card remembers it."""


def _message(gateway: Gateway) -> Message:
    instant = gateway.turn.instant
    return Message(
        "sensors/n1/temperature",
        b"21",
        qos=1,
        client_id="n1",
        received_at=instant.wall,
        arrived=instant.monotonic,
        message_expiry=3_600,
    )


def _landed(folder: Path) -> list[dict[str, Any]]:
    """Return the records of the files in a folder."""
    files = sorted(path for path in folder.iterdir() if path.name.endswith(".jsonl"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


async def test_nothing_expires_by_the_clock_being_set_and_the_fleet_hears_of_it(
    tmp_path: Path,
) -> None:
    file = tmp_path / "gateway.toml"
    landing = tmp_path / "landing"
    file.write_text(CONFIG.format(port=free_port(), landing=landing))
    async with AsyncExitStack() as stack:
        gateway = Gateway(load(file), tmp_path / "data", stack)
        clock = gateway.clock = SetClock(WRONG)
        await gateway.start()
        counters = gateway.counters
        assert gateway.publish(_message(gateway)) is ReasonCode.SUCCESS
        gateway.turn.end()
        clock.synchronize()
        assert counters.count("tidegate/clock/steps") == 0
        assert gateway.publish(_message(gateway)) is ReasonCode.SUCCESS
        assert counters.count("tidegate/clock/steps") == 1  # seen before the number was given
        gateway.turn.end()
        await until(lambda: counters.count("tidegate/clock/acknowledged") == 3)
        await until(lambda: counters.count("tidegate/uplink/acknowledged") == 2)
        assert counters.count("tidegate/outbox/expired") == 0
        assert counters.values["tidegate/clock/synchronized"] == 1
        assert counters.values["tidegate/clock/uncertainty_ms"] == 10

    first, second = _landed(landing / "barn")
    unknown, corrected, right = _landed(landing / "barn" / "clock")
    assert (unknown["uncertainty_ms"], unknown["to"]) == (None, None)
    assert corrected["numbers"] == {"main": [1, 1]}
    assert corrected["from"] == unknown["from"]
    assert corrected["offset_ms"] == counters.count("tidegate/clock/offset_ms")
    assert right["numbers"] == {"main": [2, None]}
    assert corrected["from"] - 5 <= first["time"] <= corrected["to"] + 5
    assert abs(first["time"] + corrected["offset_ms"] - second["time"]) < 5_000
    assert min(first["message_expiry"], second["message_expiry"]) >= 3_500
