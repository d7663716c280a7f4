"""How long do others wait while an operator asks, or a window of the history goes up again?

    .venv/bin/python -m bench.queries clients [COUNT] [--rounds N]
    .venv/bin/python -m bench.queries recall [ROWS] [--rounds N]

`clients` connects COUNT clients (9,000) and asks for all of them, page by page and in several
orders. `recall` publishes ROWS messages (60,000) to the history, and has all of them go up again to
a Mosquitto. Meanwhile another process sends a PINGREQ, or a PUBLISH with QoS 1, every 5 ms and
takes the time until the answer; before, it does the same for five seconds.
"""

import argparse
import asyncio
import json
import multiprocessing
import resource
import socket
import tempfile
import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path

from gateway.mqtt.codec.packet_codec import encode
from gateway.mqtt.packets import MQTT_5, Connect, Packet, PingReq, PubAck, Publish
from gateway.mqtt.properties import Properties
from tests.support.operator import ANSWERS
from tests.support.processes.gateway_process import GatewayProcess
from tests.support.processes.mosquitto import Mosquitto
from tests.support.raw_client import RawClient

COUNT, ROWS = 9_000, 60_000
AT_ONCE = 100
"""Connections under way at a time, and publishes without their PUBACK."""

PAUSE = 0.005
QUIET_SECONDS = 5.0

REQUESTS: tuple[dict[str, object], ...] = (
    {"sort": "id"},
    {"sort": "received", "state": "connected"},
    {"sort": "received_rate", "seconds": 0.5},
    {"match": "client-1*", "sort": "since"},
)
"""What is asked about clients, each for all pages of 500."""

BARE = '[gateway]\nid = "bench"\n'
HISTORY = BARE + (
    '[history]\nkeep = "1h"\n[uplink]\nurl = "mqtt://127.0.0.1:{port}"\nrecall = true\n'
    '[[uplink.rule]]\ntopic = "sensors/#"\n'
)
PAYLOAD = b'{"value":21.5,"unit":"C","time":1763740000000}'


def _watch(port: int, packet: Packet, answer: int, stop: Connection) -> None:
    """Send the packet again and again until told to stop; give back what each answer took."""
    times: list[float] = []
    with socket.create_connection(("127.0.0.1", port)) as stream:
        stream.sendall(encode(Connect("beside", MQTT_5), MQTT_5))
        stream.recv(1_000)
        data = encode(packet, MQTT_5)
        while not stop.poll(PAUSE):
            begun = time.perf_counter()
            stream.sendall(data)
            left = answer
            while left:
                left -= len(stream.recv(left))
            times.append(1000 * (time.perf_counter() - begun))
    stop.send(times)


@contextmanager
def _beside(port: int, packet: Packet, answer: int, times: list[float]) -> Iterator[None]:
    """Let another process measure while the body runs; `times` is milliseconds then."""
    ours, theirs = multiprocessing.Pipe()
    watching = multiprocessing.Process(target=_watch, args=(port, packet, answer, theirs))
    watching.start()
    yield
    ours.send(None)
    times += sorted(ours.recv())
    watching.join()


async def _measure(
    port: int, packet: Packet, answer: int, work: "Coroutine[object, object, int]"
) -> None:
    """Print what answers took without the work, and beside it."""
    for name in ("alone", "beside it"):
        times: list[float] = []
        begun, count = time.monotonic(), 0
        with _beside(port, packet, answer, times):
            if name == "alone":
                await asyncio.sleep(QUIET_SECONDS)
            else:
                count = await work
        seconds = time.monotonic() - begun
        places = {"median": 50, "p99": 99, "p99.9": 99.9}
        shown = [f"{word} {times[int(len(times) * at / 100)]:.1f}" for word, at in places.items()]
        more = f"; {count:,} rows in {seconds:.1f} s" if count else ""
        print(
            f"{name:10}{len(times):,} answers, ms: {', '.join(shown)}, most {times[-1]:.1f}{more}"
        )


async def _connect(port: int, number: int, limit: asyncio.Semaphore) -> RawClient:
    async with limit:
        client = await RawClient.open(port)
        await client.connect_as(f"client-{number}")
        return client


async def ask_for_all(port: int) -> int:
    """Ask for every page of each request; return how many rows came."""
    operator = await RawClient.open(port)
    await operator.connect_as("operator")
    await operator.subscribe(ANSWERS, 0)
    properties, count = Properties(response_topic=ANSWERS), 0
    for request in REQUESTS:
        offset: int | None = 0
        while offset is not None:
            payload = json.dumps({**request, "offset": offset, "limit": 500}).encode()
            topic = "$CONTROL/tidegate/query/clients"
            await operator.send(Publish(topic, payload, properties=properties))
            answer = await operator.receive()
            assert isinstance(answer, Publish)
            page = json.loads(answer.payload)
            count += len(page["rows"])
            offset = page.get("next")
    await operator.close()
    return count


async def clients(count: int) -> None:
    """Measure queries about so many clients."""
    with tempfile.TemporaryDirectory() as name:
        gateway = GatewayProcess(Path(name), BARE).start()
        try:
            limit = asyncio.Semaphore(AT_ONCE)
            made = (_connect(gateway.port, number, limit) for number in range(count))
            connected = await asyncio.gather(*made)
            await _measure(gateway.port, PingReq(), 2, ask_for_all(gateway.port))
            for client in connected:
                await client.close()
        finally:
            gateway.kill()


async def fill(port: int, rows: int) -> None:
    """Publish so many messages, and wait for their PUBACKs."""
    client = await RawClient.open(port)
    await client.connect_as("filler")
    for first in range(0, rows, AT_ONCE):
        packets = [
            Publish(f"sensors/n{number}/t", PAYLOAD, 1, packet_id=number + 1)
            for number in range(min(AT_ONCE, rows - first))
        ]
        await client.send(*packets)
        for _ in packets:
            await client.receive()
    await client.close()


async def recall_all(port: int) -> int:
    """Have the whole history go up again; return how many messages that are."""
    client = await RawClient.open(port)
    await client.connect_as("asker")
    await client.subscribe(ANSWERS, 0)
    topic, properties = "$CONTROL/tidegate/recall", Properties(response_topic=ANSWERS)
    await client.send(Publish(topic, b"{}", 1, packet_id=1, properties=properties))
    while True:
        packet = await client.receive()
        if isinstance(packet, PubAck):
            assert packet.reason_code == 0, packet
        elif isinstance(packet, Publish):
            answer = json.loads(packet.payload)
            if answer["state"] != "accepted":
                await client.close()
                return int(answer["messages"])


async def recall(rows: int) -> None:
    """Measure a recall of so many rows."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        mosquitto = Mosquitto(folder)
        mosquitto.start()
        gateway = GatewayProcess(folder, HISTORY.format(port=mosquitto.port)).start()
        try:
            await fill(gateway.port, rows)
            await asyncio.sleep(QUIET_SECONDS)  # the outbox is empty
            live = Publish("live/t", PAYLOAD, 1, packet_id=1)
            await _measure(gateway.port, live, 4, recall_all(gateway.port))
        finally:
            gateway.kill()
            mosquitto.kill()


def main() -> None:
    """Measure what the command line says."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("clients", "recall"))
    parser.add_argument("number", nargs="?", type=int)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    for _ in range(options.rounds):
        if options.what == "clients":
            asyncio.run(clients(options.number or COUNT))
        else:
            asyncio.run(recall(options.number or ROWS))


if __name__ == "__main__":
    main()
