"""Counters are there from the start, and what the gateway says of itself is counted apart."""

from contextlib import AsyncExitStack
from pathlib import Path

from gateway.config.load import bare
from gateway.mqtt.packets import Publish
from gateway.telemetry.figure import Kind
from gateway.telemetry.own_metrics import OWN_FIGURES
from tests.support.disk.storage import until
from tests.support.gateway_here import Gateway
from tests.support.ports import free_port
from tests.support.raw_client import RawClient

SYS = "$SYS/broker/"


async def test_each_counter_is_there_at_zero(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        gateway = Gateway(bare(free_port()), tmp_path / "data", stack)
        await gateway.start()
        retained = gateway.broker.retained
        names = [each.name for each in OWN_FIGURES if each.kind is Kind.COUNTER and not each.varies]
        assert "tidegate/clients/refused" in names
        assert [name for name in names if retained.get(SYS + name) is None] == []
        refused = retained.get(f"{SYS}tidegate/clients/refused")
        assert refused is not None
        assert refused.packets.one(0).decode() == "0"


async def test_figures_that_are_sent_are_counted_apart(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        port = free_port()
        gateway = Gateway(bare(port), tmp_path / "data", stack)
        await gateway.start()
        count = gateway.counters.count
        assert count("tidegate/sys/messages_sent") == 0
        client = await RawClient.open(port)
        await client.say_connect("c")
        await client.subscribe("a")
        await client.subscribe("$SYS/broker/uptime")
        await until(lambda: count("tidegate/sys/messages_sent") > 0)
        assert count("tidegate/sys/bytes_sent") >= len("1 seconds")
        await client.send(Publish("a", b"x"))
        await until(
            lambda: gateway.broker.traffic.messages_sent > count("tidegate/sys/messages_sent")
        )
        await client.close()
