"""What tests that crash gateways look at, and how they compare."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

from crashtest.client import PATIENCE, Client
from crashtest.gateway_process import CONFIGURATION, GatewayProcess
from crashtest.numbers import Promise
from crashtest.participant import until
from crashtest.publisher import Publisher
from crashtest.receiver import Receiver
from crashtest.records import Records
from gateway.mqtt.packets import Connect, PingReq, PingResp, Publish, Subscribe, SubscriptionRequest
from tests.support.processes import fork_server
from tests.support.processes.gateway_process import COMMAND

OUTBOX_FIRST = CONFIGURATION.replace("[uplink]", "[uplink]\ncommit_within = 0")
"""A configuration with which every message is in the database before it lands."""

QUICK_FIGURES = OUTBOX_FIRST.replace("[uplink]", "[broker]\nsys_interval = 0.1\n[uplink]")
"""The same with figures under $SYS that are never much older than 0.1 s."""


NOBODY_TAKES = QUICK_FIGURES.replace('directory = "{landing}"', 'url = "mqtt://127.0.0.1:1"')
"""The same towards a fleet that is away: the outbox only grows."""


class ForkedGateway(GatewayProcess):
    """The crash test's gateway, in a fork of a process that has imported it, if not traced."""

    def spawn(self) -> None:
        """Start it and return at once."""
        if self.wrapper:
            super().spawn()
            return
        words = [str(COMMAND), "run", *self.arguments, "--config", str(self._configuration)]
        words += ["--data", str(self.data)]
        with self._log.open("ab") as log, Path(os.devnull).open("rb") as nothing:
            process = fork_server.start(words, Path.cwd(), nothing, log, log)
        self.process = process  # type: ignore[assignment]  # by shape


async def retained(port: int, topic: str) -> str:
    """Return the retained message of a topic as text, "" for none."""
    client = await Client.connect(port, Connect("looks"))
    client.send(Subscribe(1, [SubscriptionRequest(topic)]), PingReq())
    text = ""
    async for packet in client.packets():
        if isinstance(packet, Publish):
            text = packet.payload.decode()
        elif isinstance(packet, PingResp):
            break
    client.close()
    return text


async def until_figure(gateway: GatewayProcess, name: str, least: int = 1) -> int:
    """Wait until a figure under $SYS is as high as this, and return it."""
    async with asyncio.timeout(PATIENCE):
        while True:
            figure = int(await retained(gateway.port, f"$SYS/broker/{name}") or 0)
            if figure >= least:
                return figure
            await asyncio.sleep(0.05)


async def until_kept(publisher: Publisher, more: int) -> None:
    """Wait until so many more messages are acknowledged than now."""
    wanted = kept(publisher) + more
    await until(lambda: kept(publisher) >= wanted, f"{more} messages more are acknowledged")


def kept(publisher: Publisher) -> int:
    """Return how many messages are acknowledged."""
    return sum(sent.promise is Promise.ACKNOWLEDGED for sent in publisher.sent)


def compare(gateway: GatewayProcess, publishers: Sequence[Publisher], scratch: Path) -> list[str]:
    """Return a sentence for each promise to these that the files do not keep."""
    findings: list[str] = []
    records = Records(gateway.data, gateway.landing, scratch, findings)
    records.check()
    receiver = Receiver("the outbox", records.received, exactly_once=True)
    for publisher in publishers:
        findings += receiver.compare(publisher.name, publisher.qos, publisher.sent)
        findings += publisher.findings
    return findings
