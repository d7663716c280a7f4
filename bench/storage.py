"""What does durability cost, in messages a second and in bytes on the disk?

    .venv/bin/python -m bench.storage [throughput|bytes]

100 publishers send messages of 200 bytes at QoS 1 to a subscriber whose session is persistent, and
which is online or away.
"""

import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Self

from bench.publish_load import (
    PAYLOAD,
    Publisher,
    Subscriber,
    connect_publishers,
    connect_subscriber,
    until,
)
from tests.support.processes.gateway_process import GatewayProcess
from tests.support.raw_client import Clients

PUBLISHERS = 100
WINDOW = 10
"""Messages without a PUBACK, of each publisher."""

AWAY_WARM_UP = 0.05
AWAY_SECONDS = 0.12
"""Seconds for a subscriber that is away: in memory alone its queue of 64 MiB is full soon."""

SECONDS = 3.0
"""Of each measurement, after WARM_UP seconds."""

WARM_UP = 1.0
ROUNDS = 3
SETTLE = 2.0
"""Seconds in which what could still wait is written."""

TICK = 0.01
"""Seconds between the bursts of a load with a rate."""

RATES = ((100, 6.0), (1_000, 4.0), (10_000, 3.0), (50_000, 3.0), (None, 4.0))
"""Messages a second, None for as many as go, and the seconds for which they come."""

CONFIG = """
[broker]
maximum_queued_messages = 100000000
maximum_queued_bytes = 1000000000000
maximum_queued_bytes_total = 1000000000000
sys_interval = 0.5
[storage]
durability = "{durability}"
"""


class Run:
    """A gateway with its publishers and its subscriber, in a new data folder."""

    def __init__(self, durability: str, *, online: bool) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="bench-storage-")
        self.gateway = GatewayProcess(Path(self._folder.name), CONFIG.format(durability=durability))
        self._online = online
        self.publishers: list[Publisher] = []
        self.subscriber = Subscriber()

    async def __aenter__(self) -> Self:
        self.gateway.start()
        self.subscriber = await connect_subscriber(self.gateway.port)
        if not self._online:
            assert self.subscriber.transport is not None
            self.subscriber.transport.abort()
        self.publishers = await connect_publishers(self.gateway.port, PUBLISHERS, WINDOW)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.gateway.kill()
        self._folder.cleanup()

    @property
    def acknowledged(self) -> int:
        """Messages that were taken so far."""
        return sum(publisher.acknowledged for publisher in self.publishers)

    async def at_full_speed(self, seconds: float) -> None:
        """Keep all windows full for so long, and wait for the last acknowledgements."""
        for publisher in self.publishers:
            publisher.run()
        await asyncio.sleep(seconds)
        await self.stop()

    async def stop(self) -> None:
        """Send nothing more and wait for the last acknowledgements."""
        for publisher in self.publishers:
            publisher.pause()
        await until(lambda: all(publisher.free == WINDOW for publisher in self.publishers))

    async def at_rate(self, rate: int, seconds: float) -> None:
        """Send `rate` messages a second, the publishers in turn."""
        loop = asyncio.get_running_loop()
        begin, sent = loop.time(), 0
        while (now := loop.time()) < begin + seconds:
            while sent < (now - begin) * rate:
                publisher = self.publishers[sent % PUBLISHERS]
                if not publisher.free:
                    break  # what is late is sent at the next tick
                publisher.publish(1)
                sent += 1
            await asyncio.sleep(TICK)
        await self.stop()

    async def commits(self) -> int:
        """Return how many transactions were committed, as `$SYS` says it."""
        clients = Clients(self.gateway.port)
        client = await clients.connect("commits")
        await client.subscribe("$SYS/broker/tidegate/storage/commits")
        message = await client.receive()
        await clients.close()
        return int(message.payload)  # type: ignore[union-attr]  # a PUBLISH

    def written(self) -> int:
        """Return the bytes that the gateway has had written to disk (proc(5))."""
        assert self.gateway.process is not None
        text = Path(f"/proc/{self.gateway.process.pid}/io").read_text()
        fields = dict(line.split(": ") for line in text.splitlines())
        return int(fields["write_bytes"])

    def processor(self) -> float:
        """Return the seconds of processor time that the gateway has used."""
        assert self.gateway.process is not None
        fields = Path(f"/proc/{self.gateway.process.pid}/stat").read_text().split()
        return (int(fields[13]) + int(fields[14])) / 100


async def throughput(durability: str, *, online: bool) -> tuple[float, float]:
    """Return messages a second, and µs of processor time for each."""
    async with Run(durability, online=online) as run:
        for publisher in run.publishers:
            publisher.run()
        await asyncio.sleep(WARM_UP if online else AWAY_WARM_UP)
        begin, before, used = time.perf_counter(), run.acknowledged, run.processor()
        await asyncio.sleep(SECONDS if online else AWAY_SECONDS)
        count, seconds = run.acknowledged - before, time.perf_counter() - begin
        return count / seconds, (run.processor() - used) / count * 1e6


async def compare() -> None:
    """Print messages a second for each durability class, in turns."""
    print("| subscriber | class | messages/s | µs of processor each | of `memory` |")
    print("| --- | --- | --: | --: | --: |")
    for online in (True, False):
        found: dict[str, list[tuple[float, float]]] = {"memory": [], "commit": [], "batch(50)": []}
        for _ in range(ROUNDS):
            for durability, values in found.items():
                values.append(await throughput(durability, online=online))
        memory = statistics.median(rate for rate, _ in found["memory"])
        for durability, values in found.items():
            rate = statistics.median(rate for rate, _ in values)
            processor = statistics.median(each for _, each in values)
            print(
                f"| {'online' if online else 'away'} | `{durability}` | {rate:,.0f} |"
                f" {processor:.0f} | {rate / memory:.2f} |",
                flush=True,
            )


async def bytes_on_disk(durability: str, rate: int | None, seconds: float, *, online: bool) -> str:
    """Return the row of the table for one load."""
    async with Run(durability, online=online) as run:
        await asyncio.sleep(SETTLE)
        before, commits_before = run.written(), await run.commits()
        begin = time.perf_counter()
        if rate is None:
            await run.at_full_speed(seconds)
        else:
            await run.at_rate(rate, seconds)
        count, seconds = run.acknowledged, time.perf_counter() - begin
        await asyncio.sleep(SETTLE)
        written, commits = run.written() - before, await run.commits() - commits_before
        drained = "" if online else f"{await _drain(run, count) / count:,.0f}"
        each = written / count
        shared = f"{count / commits:,.1f}" if commits else ""
        of_payload = f"{each / len(PAYLOAD):.2f}"
        place = "online" if online else "away"
        figures = [f"{count / seconds:,.0f}", shared, f"{each:,.0f}", of_payload, drained]
        return " | ".join([f"| {place}", f"`{durability}`", *figures]) + " |"


async def _drain(run: Run, count: int) -> int:
    """Let the subscriber come back for `count` messages; return the bytes that are written."""
    before = run.written()
    subscriber = await connect_subscriber(run.gateway.port)
    await until(lambda: subscriber.received >= count, 120)
    await asyncio.sleep(SETTLE)
    return run.written() - before


async def count_bytes() -> None:
    """Print the bytes on disk for each message of 200 bytes."""
    print(
        "| subscriber | class | messages/s | messages a commit | bytes each | times the payload |"
        " bytes each when they are fetched |"
    )
    print("| --- | --- | --: | --: | --: | --: | --: |")
    for durability in ("commit", "batch(50)"):
        for online in (True, False):
            for rate, seconds in RATES:
                row = await bytes_on_disk(durability, rate, seconds, online=online)
                print(row, flush=True)


async def main() -> None:
    """Print the tables that were asked for."""
    wanted = sys.argv[1:] or ["throughput", "bytes"]
    if "throughput" in wanted:
        await compare()
        print()
    if "bytes" in wanted:
        await count_bytes()


if __name__ == "__main__":
    asyncio.run(main())
