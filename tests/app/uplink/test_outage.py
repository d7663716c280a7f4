"""What comes in is measured; the figures say how long an outage would be borne."""

from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from gateway.app.gateway import Gateway
from gateway.app.start import start
from gateway.app.uplink.outage import Outage
from gateway.config.load import load
from gateway.storage.outbox.bounds import for_rows
from gateway.storage.outbox.outbox import Outbox
from tests.support.clocks import ManualClock
from tests.support.disk.storage import outbox_row
from tests.support.ports import free_port

QUOTA = for_rows(64 * 1024 * 1024)

SETTINGS = """
[[listener]]
port = {port}
[outbox]
maximum_bytes = "64MiB"
survive = "10h"
expected_rate = 1
expected_bytes = 200
[uplink]
"""


async def test_the_figures_follow_the_load(tmp_path: Path) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text(SETTINGS.format(port=free_port()))
    alarms: list[tuple[str, str]] = []
    async with AsyncExitStack() as stack:
        gateway = Gateway(load(file), tmp_path / "data", stack)
        clock = gateway.clock = ManualClock()
        await start(gateway, durable=True)
        gateway.telemetry.alarm = lambda name, text: alarms.append((name, text))
        counters = gateway.counters
        outbox = Outbox(gateway.database, gateway.writer, counters)
        outage = Outage(gateway, outbox)

        outage.look()  # nothing is known yet
        assert "tidegate/outbox/survives_seconds" not in counters.values

        clock.step(10.0)
        for number in range(1, 21):
            outbox.add(outbox_row(number, payload=bytes(200)))
        counters.add("tidegate/rules/accepted", 20)
        outage.look()
        row = outbox.bytes / 20
        expected = (QUOTA - outbox.bytes) / (2 * row)
        survived = counters.count("tidegate/outbox/survives_seconds")
        assert survived == pytest.approx(expected, abs=1)
        assert "tidegate/outbox/drains_seconds" not in counters.values  # nothing went up yet

        clock.step(10.0)
        counters.add("tidegate/rules/accepted", 20)
        counters.add("tidegate/uplink/acknowledged", 1_000)
        outage.look()
        survived = counters.count("tidegate/outbox/survives_seconds")
        drained = counters.count("tidegate/outbox/drains_seconds")
        assert drained == pytest.approx((20 + 2 * survived) / (100 - 2), rel=0.01)
        assert alarms == []

        # far more comes than was promised for; then nothing any more
        for _ in range(60):
            clock.step(10.0)
            counters.add("tidegate/rules/accepted", 100)
            outage.look()
        assert counters.count("tidegate/outbox/survives_seconds") < 10 * 3600
        (name, text), *more = alarms
        assert (name, more) == ("headroom", [])
        assert "promised are 10.0 h" in text
        for _ in range(600):
            clock.step(10.0)
            outage.look()
        assert alarms[1:] == [("headroom", "")]
        assert counters.count("tidegate/outbox/survives_seconds") > 10 * 3600
