"""A database that may not grow any more: who is refused, and what is kept."""

import asyncio
import resource
from collections.abc import Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from random import Random

from crashtest.gateway_process import CONFIGURATION, GatewayProcess
from crashtest.numbers import Promise
from crashtest.participant import until
from crashtest.publisher import Publisher
from crashtest.receiver import Receiver
from crashtest.records import Records

LIMIT = 2 * 1024 * 1024
"""Bytes that no file of the gateway may exceed meanwhile: the device itself is not filled up."""

AFTERWARDS = 20
"""Messages that must be acknowledged once the limit is gone."""

WITHOUT_FLEET = CONFIGURATION.replace('directory = "{landing}"', 'url = "mqtt://127.0.0.1:1"')
"""Towards a fleet that is away, so that the outbox only grows."""


PROBE_SECONDS = 0.5
"""How long a probe waits for its answer; one that meets the failure itself has none."""


@dataclass(frozen=True, slots=True)
class Full:
    """What was seen: messages acknowledged before the database was full."""

    acknowledged: int


async def fill(gateway: GatewayProcess, seed: int, findings: list[str]) -> Full:
    """Publish until the gateway refuses, lift the limit, kill it; compare what it kept."""
    random = Random(seed)  # noqa: S311 - to be repeated, not to be kept secret
    filler = Publisher("filler", findings, random, persistent=False)
    probes: list[Publisher] = []
    async with aclosing(filler):
        await gateway.start()
        _limit(gateway, LIMIT)
        await filler.join(gateway.port)
        publishing = asyncio.create_task(filler.publish_freely())
        while not probes or probes[-1].sent[0].promise is not Promise.REFUSED:
            gateway.check()
            probes.append(Publisher(f"probe{len(probes)}", findings, random, persistent=False))
            await _probe(gateway, probes[-1])
        full = Full(_acknowledged_by(filler))
        _limit(gateway, resource.RLIM_INFINITY)
        wanted = full.acknowledged + AFTERWARDS
        await until(lambda: _acknowledged_by(filler) >= wanted, "messages are taken again")
        gateway.check()
        gateway.kill()
        await publishing
    _compare(gateway, [filler, *probes], findings)
    return full


async def _probe(gateway: GatewayProcess, publisher: Publisher) -> None:
    """Publish one message as a client whose answer stands behind no other."""
    async with aclosing(publisher):
        await publisher.join(gateway.port)
        await publisher.publish(1)
        with suppress(TimeoutError):
            await asyncio.wait_for(publisher.idle(), PROBE_SECONDS)


def _compare(gateway: GatewayProcess, publishers: Sequence[Publisher], findings: list[str]) -> None:
    records = Records(gateway.data, gateway.landing, gateway.folder / "scratch", findings)
    records.check()
    receiver = Receiver("the full database", records.received, exactly_once=True)
    for publisher in publishers:
        findings += receiver.compare(publisher.name, publisher.qos, publisher.sent)


def _limit(gateway: GatewayProcess, size: int) -> None:
    if gateway.process is not None:
        limits = (size, resource.RLIM_INFINITY)
        resource.prlimit(gateway.process.pid, resource.RLIMIT_FSIZE, limits)


def _acknowledged_by(publisher: Publisher) -> int:
    return sum(sent.promise is Promise.ACKNOWLEDGED for sent in publisher.sent)
