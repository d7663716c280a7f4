"""Counters are there from the start, and what the gateway says of itself is counted apart."""

from contextlib import AsyncExitStack
from pathlib import Path

from gateway.config.load import bare, load
from gateway.mqtt.packets import Publish
from gateway.telemetry.figure import Kind
from gateway.telemetry.own_metrics import BROKER_FIGURES, OWN_FIGURES
from tests.support.disk.storage import until
from tests.support.gateway_here import Gateway
from tests.support.ports import free_port
from tests.support.raw_client import RawClient

SYS = "$SYS/broker/"


CONFIG = """
[[listener]]
port = {port}
[[uplink]]
name = "cloud"
url = "mqtt://127.0.0.1:1"
[[uplink]]
name = "plant"
directory = "{folder}"
[[channel]]
name = "jobs"
filter = "work/#"
[[thermal]]
name = "board"
"""


async def test_each_counter_is_there_at_zero(tmp_path: Path) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text(CONFIG.format(port=free_port(), folder=tmp_path / "landing"))
    async with AsyncExitStack() as stack:
        gateway = Gateway(load(file), tmp_path / "data", stack)
        await gateway.start()
        gateway.telemetry.sys_topics.publish()
        found = gateway.broker.retained.find(f"{SYS}#", 0.0)
        names = {each.topic.removeprefix(SYS): each.packets.one(0) for each in found}
        figures = (*BROKER_FIGURES, *OWN_FIGURES, *gateway.bridges.figures())
        counters = [each for each in figures if each.kind is Kind.COUNTER]
        without = [each.name for each in counters if not any(map(each.pattern().fullmatch, names))]
        assert without == []
        for name in ("tidegate/clients/refused", "tidegate/uplink/plant/ended_closed"):
            assert names[name] == b"0"
        assert names["tidegate/thermal/rejected"] == b"0"


async def test_figures_that_are_sent_are_counted_apart(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        port = free_port()
        gateway = Gateway(bare(port), tmp_path / "data", stack)
        await gateway.start()
        count = gateway.counters.count
        assert count("tidegate/sys/messages_sent") == 0
        client = await RawClient.open(port)
        await client.connect_as("c")
        await client.subscribe("a")
        await client.subscribe("$SYS/broker/uptime")
        await until(lambda: count("tidegate/sys/messages_sent") > 0)
        assert count("tidegate/sys/bytes_sent") >= len("1 seconds")
        await client.send(Publish("a", b"x"))
        await until(
            lambda: gateway.broker.traffic.messages_sent > count("tidegate/sys/messages_sent")
        )
        other = await RawClient.open(port)
        await other.connect_as("other")
        await other.subscribe("$SYS/#")  # hundreds that are retained, which are figures as well
        apart = gateway.broker.traffic.messages_sent - count("tidegate/sys/messages_sent")
        assert apart == 1
        assert gateway.broker.traffic.bytes_sent - count("tidegate/sys/bytes_sent") == 1
        await other.close()
        await client.close()
