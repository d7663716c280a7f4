"""Queries about bridges and what they read, as docs/operate/query.md and its schemas have them."""

from contextlib import AsyncExitStack
from pathlib import Path

from gateway.config.load import load
from gateway.mqtt.packets import Publish
from tests.support.disk.storage import until
from tests.support.gateway_here import Gateway
from tests.support.operator import Operator
from tests.support.ports import free_port

CONFIG = """
[[listener]]
port = {port}

[[serial]]
name = "barn"
port = "topic://nodes/barn"
format = "json"

[[serial]]
name = "cellar"
port = "/dev/ttyNONE"
"""


async def test_bridges_and_readings_are_listed(tmp_path: Path) -> None:
    port = free_port()
    file = tmp_path / "gateway.toml"
    file.write_text(CONFIG.format(port=port))
    async with AsyncExitStack() as stack:
        gateway = Gateway(load(file), tmp_path / "data", stack)
        await gateway.start()
        operator = await Operator.open(port)
        count = gateway.counters.count
        await until(lambda: gateway.counters.values.get("tidegate/serial/barn/state") == "open")
        for line in (b'{"temp_c":21.5}\n', b'{"quantity":"power","value":[1]}\n'):
            await operator.client.send(Publish("nodes/barn/up", line))
        await until(lambda: count("tidegate/serial/rejected") == 1)
        answer = await operator.ask("bridges")
        assert [(each["name"], each["state"]) for each in answer["rows"]] == [
            ("barn", "open"),
            ("cellar", "waiting"),
        ]
        barn = answer["rows"][0]
        assert (barn["place"], barn["counted"]) == ("topic://nodes/barn", {"lines": 2})
        assert barn["refused"][0]["count"] == 1
        (reading,) = (await operator.ask("readings", kind="serial", name="barn"))["rows"]
        assert (reading["quantity"], reading["value"], reading["unit"]) == (
            "temperature",
            21.5,
            "°C",
        )
        assert (await operator.ask("readings", name="cellar"))["rows"] == []
        await operator.close()


async def test_a_gateway_without_bridges_has_none(operator: Operator) -> None:
    assert (await operator.ask("bridges"))["total"] == 0
    assert (await operator.ask("readings"))["rows"] == []
