"""What do serial nodes cost: CPU, delay and losses of 32 ports, and how fast are frames decoded?

    .venv/bin/python -m bench.bridges [NODES] [FRAMES A SECOND] [SECONDS]

Each node writes frames to a pseudo-terminal of its own and counts the acknowledgements, which
leave after the commit. A client subscribes to all of them and takes the delay from the value,
which is the time of sending.
"""

import multiprocessing
import os
import sys
import tempfile
import time
import tty
from multiprocessing.synchronize import Event
from pathlib import Path

import paho.mqtt.client as paho
from node.frames import encode_reading, encode_readings
from paho.mqtt.enums import CallbackAPIVersion

from bench.harness.processes import processor_seconds
from gateway.bridges.serial.frame_body import decode_frame
from gateway.bridges.serial.serial_frames import FrameDecoder
from gateway.counters import Counters
from tests.support.processes.gateway_process import GatewayProcess
from tests.support.waiting import until

DECODED = 200_000
"""Frames of the decoder's measurement."""


def main() -> None:
    """Measure both; print a line for each."""
    given = [int(text) for text in sys.argv[1:]]
    nodes, rate, seconds = given + [32, 100, 20][len(given) :]
    print(f"decoding: {decoded_per_second():,.0f} frames a second")
    with tempfile.TemporaryDirectory() as folder:
        print(run(Path(folder), nodes, rate, seconds))


def decoded_per_second() -> float:
    """Return the frames of one temperature that are found, checked and decoded in a second."""
    readings = [encode_reading("temperature", (215, -1), "°C")]
    data = b"".join(
        encode_readings("n1", 7, sequence, 0, 0, 0, None, readings) for sequence in range(1, 101)
    )
    decoder = FrameDecoder(Counters().add)
    started = time.process_time()
    for _ in range(DECODED // 100):
        for body in decoder.feed(data):
            decode_frame(body)
    return DECODED / (time.process_time() - started)


def run(folder: Path, nodes: int, rate: int, seconds: int) -> str:
    """Run the nodes against a gateway; return what it cost."""
    ends = [os.openpty() for _ in range(nodes)]
    for number, (_, other) in enumerate(ends):
        tty.setraw(other)
        (folder / f"tty{number}").symlink_to(os.ttyname(other))
    ports = "".join(f'[[serial]]\nport = "tty{number}"\n' for number in range(nodes))
    gateway = GatewayProcess(folder, ports)
    gateway.start()
    # what a port has received before it is opened is discarded: a node sends it again
    until(lambda: gateway.log().count(": open") == nodes, "every port is open", gateway.log)
    delays: list[float] = []
    client = subscribed(gateway.port, delays)
    go = multiprocessing.Event()
    reported: multiprocessing.Queue[tuple[int, int]] = multiprocessing.Queue()
    masters = [master for master, _ in ends]
    sender = multiprocessing.Process(target=send, args=(masters, rate, seconds, go, reported))
    sender.start()
    assert gateway.process is not None
    before, started = processor_seconds(gateway.process.pid), time.monotonic()
    go.set()
    sent, acknowledged = reported.get()
    elapsed = time.monotonic() - started
    used = processor_seconds(gateway.process.pid) - before
    sender.join()
    client.loop_stop()
    gateway.stop()
    delays.sort()
    middle, high = (1000 * delays[int(part * (len(delays) - 1))] for part in (0.5, 0.99))
    return (
        f"{nodes} nodes at {rate} frames/s for {seconds} s:"
        f" {sent} sent, {acknowledged} acknowledged,"
        f" {len(delays)} delivered; {100 * used / elapsed:.0f} % of a core,"
        f" {1e6 * used / sent:.0f} µs a frame; delay {middle:.1f} ms (p99 {high:.1f} ms)"
    )


def subscribed(port: int, delays: list[float]) -> paho.Client:
    """Return a client that notes the delay of each reading."""
    client = paho.Client(CallbackAPIVersion.VERSION2)

    def on_message(_client: paho.Client, _data: object, message: paho.MQTTMessage) -> None:
        value = int(message.payload.partition(b":")[2].partition(b",")[0])
        delays.append(time.time() - value / 1e6)

    client.on_message = on_message
    client.connect("127.0.0.1", port)
    client.subscribe("sensors/#", qos=0)
    client.loop_start()
    return client


def send(
    masters: list[int],
    rate: int,
    seconds: int,
    go: Event,
    reported: "multiprocessing.Queue[tuple[int, int]]",
) -> None:
    """Write a frame of each node in turn at the rate; tell how many were sent and acknowledged."""
    for master in masters:
        os.set_blocking(master, False)
    go.wait()
    sent = zeros = 0
    started = time.monotonic()
    for sequence in range(1, rate * seconds + 1):
        for number, master in enumerate(masters):
            due = started + (sequence - 1 + number / len(masters)) / rate
            time.sleep(max(0.0, due - time.monotonic()))
            reading = encode_reading("count", int(time.time() * 1e6), None)
            body = encode_readings(f"n{number}", 7, sequence, 0, 0, 0, None, [reading])
            sent += os.write(master, body) == len(body)
            zeros += answers(master)
    deadline = time.monotonic() + 10
    while zeros < 2 * sent and time.monotonic() < deadline:
        zeros += sum(map(answers, masters))
        time.sleep(0.01)
    reported.put((sent, zeros // 2))


def answers(master: int) -> int:
    """Return the zero bytes that have come: two for each acknowledgement."""
    try:
        return os.read(master, 65_536).count(0)
    except BlockingIOError:
        return 0


if __name__ == "__main__":
    main()
