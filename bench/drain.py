"""How fast does an outage drain while live messages keep coming, and how late are those?

    .venv/bin/python -m bench.drain [single|batch] [ROWS] [RATE]

Fills the outbox of a gateway with ROWS rows (300,000: five minutes at 1,000 messages/s), starts
it beside a real Mosquitto and publishes RATE messages a second (1,000) to it with QoS 1. A
subscriber of Mosquitto's counts the backlog and takes the time that each live message needed
from the publisher's hand to the fleet.
"""

import asyncio
import contextlib
import itertools
import json
import sys
import tempfile
import time
import zlib
from dataclasses import dataclass, field
from pathlib import Path

from bench.harness.processes import processor_seconds
from gateway.clock import Clock
from gateway.counters import Counters
from gateway.mqtt.message import Message
from gateway.mqtt.packets import Packet, PubAck, Publish
from gateway.mqtt.reason_codes import ReasonCode
from gateway.storage.engine.database import open_database
from gateway.storage.engine.writer import Writer
from gateway.storage.outbox.outbox import Outbox
from gateway.storage.outbox.row import OutboxRow
from tests.support.processes.gateway_process import GatewayProcess
from tests.support.processes.mosquitto import Mosquitto
from tests.support.raw_client import RawClient

ROWS = 300_000
RATE = 1_000
TICK = 0.01
"""Seconds between two bursts of the publisher."""

TURN = 1_000
"""Rows in a transaction while the outbox is filled."""

TOPICS = 100
SECONDS = 600.0
EPOCH = "00a1b2c3d4"

CONFIG = """\
[gateway]
id = "bench"
[uplink]
url = "mqtt://127.0.0.1:{port}"
{more}
[[uplink.rule]]
topic = "sensors/#"
"""
MORE = {"single": "", "batch": 'batch = "zlib"'}


def payload(number: int) -> bytes:
    """Return a reading of 78 bytes that says when it was made."""
    stamp = time.monotonic_ns()
    return b'{"value":%.2f,"unit":"\xc2\xb0C","time":%d,"stamp":%d}' % (
        20 + number % 1000 / 100,
        1_763_740_000_000 + number,
        stamp,
    )


async def fill(data: Path, rows: int) -> None:
    """Put rows into the outbox of a gateway that does not run."""
    database = await open_database(data, Clock())
    writer = Writer(database.writer, Counters())
    outbox = Outbox(database, writer, Counters())
    await outbox.load()
    for number in range(1, rows + 1):
        topic = f"sensors/n{number % TOPICS}/temperature"
        time_ms = 1_763_740_000_000 + number
        message = Message(topic, payload(number), qos=1, received_at=time_ms)
        outbox.add(OutboxRow(message, EPOCH, "main", number, "live"))
        if number % TURN == 0:
            outbox.end_turn()
            await _pending(writer, 20 * TURN)
    outbox.end_turn()
    await _pending(writer, 0)
    await writer.close()
    await outbox.close()
    await database.close()


async def _pending(writer: Writer, most: int) -> None:
    while writer.pending_rows > most:  # noqa: ASYNC110 - a bench may poll
        await asyncio.sleep(0.002)


@dataclass(slots=True)
class Figures:
    """What the subscriber saw."""

    backlog: set[int] = field(default_factory=set)
    live: list[float] = field(default_factory=list)
    first: float = 0.0
    last: float = 0.0
    repeated: int = 0
    rising: list[tuple[float, int]] = field(default_factory=list)


def note(figures: Figures, seq: str, body: bytes | str) -> None:
    """Count one message of the fleet."""
    now = time.monotonic()
    epoch, _, number = seq.split(".")
    if epoch != EPOCH:
        stamp = int(json.loads(body)["stamp"])
        figures.live.append(now - stamp / 1e9)
        return
    if not figures.backlog:
        figures.first = now
    figures.last = now
    if int(number) in figures.backlog:
        figures.repeated += 1
    figures.backlog.add(int(number))
    if not figures.rising or now - figures.rising[-1][0] >= 1.0:
        figures.rising.append((now, len(figures.backlog)))


def note_packet(figures: Figures, packet: Packet) -> None:
    """Count the messages of one packet of the fleet."""
    if not isinstance(packet, Publish):
        return
    if packet.topic.endswith("/batch"):
        for line in zlib.decompress(packet.payload[1:]).splitlines():
            record = json.loads(line)
            seq = f"{record['epoch']}.{record['stream']}.{record['seq']}"
            note(figures, seq, record["text"])
    elif "/data/" in packet.topic:
        ours = dict(reversed(packet.properties.user_properties))
        note(figures, ours["seq"], packet.payload)


async def collect(port: int, rows: int, figures: Figures) -> None:
    client = await RawClient.open(port)
    await client.connect_as("collector")
    await client.subscribe("tidegate/#")
    while len(figures.backlog) < rows:
        note_packet(figures, await client.receive())
    await client.close()


async def publish(port: int, rate: int) -> None:
    """Publish until cancelled, a burst each TICK; PUBACKs are read and must be good."""
    client = await RawClient.open(port)
    await client.connect_as("publisher")
    acknowledgements = asyncio.create_task(_read_pubacks(client))
    begun, sent = time.monotonic(), 0
    try:
        while True:
            due = int((time.monotonic() - begun) * rate)
            await client.send(
                *(
                    Publish(
                        f"sensors/n{number % TOPICS}/humidity",
                        payload(number),
                        1,
                        packet_id=number % 65_535 + 1,
                    )
                    for number in range(sent, due)
                )
            )
            sent = due
            await asyncio.sleep(TICK)
    finally:
        acknowledgements.cancel()


async def _read_pubacks(client: RawClient) -> None:
    while True:
        packet = await client.receive()
        if not isinstance(packet, PubAck) or packet.reason_code >= ReasonCode.UNSPECIFIED_ERROR:
            raise SystemExit(f"the gateway answered {packet}")


async def figure(port: int, name: str) -> str:
    """Return a figure of the gateway."""
    client = await RawClient.open(port)
    await client.connect_as("reader")
    await client.subscribe(f"$SYS/broker/{name}")
    packet = await client.receive()
    await client.close()
    return packet.payload.decode() if isinstance(packet, Publish) else "?"


def report(kind: str, rows: int, rate: int, figures: Figures, cpu: float) -> None:
    seconds = figures.last - figures.first
    live = sorted(figures.live)
    print(
        f"{kind}: {rows} rows in {seconds:.1f} s: {rows / seconds:,.0f} a second, "
        f"{rows / seconds / rate:.1f}x the arrival rate; {figures.repeated} repeated"
    )
    print(f"an hour's {3600 * rate:,} rows: {3600 * rate / (rows / seconds) / 60:.0f} min")
    if live:
        print(
            f"live: {len(live)} messages, p50 {live[len(live) // 2] * 1000:.0f} ms, "
            f"p99 {live[len(live) * 99 // 100] * 1000:.0f} ms, most {live[-1] * 1000:.0f} ms"
        )
    sent = len(figures.backlog) + len(figures.live)
    print(
        f"the gateway's processor: {cpu:.1f} s, {cpu / sent * 1e6:.0f} µs a message, "
        f"its start and the live messages' way in included"
    )
    rates = (
        (after[1] - before[1]) / (after[0] - before[0])
        for before, after in itertools.pairwise(figures.rising)
    )
    print("rows in each second:", *(f"{rate:.0f}" for rate in rates))


async def run(kind: str, rows: int, rate: int) -> None:
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        mosquitto = Mosquitto(folder)
        mosquitto.start()
        stack.callback(mosquitto.kill)
        gateway = GatewayProcess(folder, CONFIG.format(port=mosquitto.port, more=MORE[kind]))
        begun = time.monotonic()
        gateway.data.mkdir()
        await fill(gateway.data, rows)
        print(f"filled in {time.monotonic() - begun:.1f} s")
        figures = Figures()
        collecting = asyncio.create_task(collect(mosquitto.port, rows, figures))
        await asyncio.sleep(0.2)
        gateway.start()
        stack.callback(gateway.kill)
        publishing = asyncio.create_task(publish(gateway.port, rate))
        async with asyncio.timeout(SECONDS):
            await asyncio.wait([collecting, publishing], return_when=asyncio.FIRST_COMPLETED)
        if publishing.done():
            publishing.result()
        collecting.result()
        publishing.cancel()
        slowdowns = await figure(gateway.port, "tidegate/uplink/slowdowns")
        print(f"the pacing slowed down {slowdowns} times")
        assert gateway.process is not None
        cpu = processor_seconds(gateway.process.pid)
        gateway.stop()
        report(kind, rows, rate, figures, cpu)


if __name__ == "__main__":
    arguments = sys.argv[1:]
    asyncio.run(
        run(
            arguments[0] if arguments else "single",
            int(arguments[1]) if len(arguments) > 1 else ROWS,
            int(arguments[2]) if len(arguments) > 2 else RATE,
        )
    )
