"""How many instructions does one message cost, which a busy machine does not change?

    .venv/bin/python -m bench.instructions [STORY...] [--tree NAME=PATH]... [--messages N] [--turns]

One message at a time goes through a whole gateway under valgrind's cachegrind, and the same through
Mosquitto: the next one comes when all acknowledgements of the last one are there. What FEW and what
MANY messages cost is subtracted and divided, so that start and end do not count; what timers do
meanwhile does. A tree that has compiled modules in place is measured compiled. `--turns` counts
the selector and the turns alone, without timers and other threads. There clients pause after what
they send, so that each packet comes in a poll of its own on a busy machine, too.
"""

import argparse
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.ports import free_port

ROOT = Path(__file__).parents[1]
VALGRIND = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]
TURNS = [
    *("valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"),
    "--toggle-collect=__pyx_f_7gateway_6server_15socket_selector_14SocketSelector_select",
    "--toggle-collect=uncached_lru_cache_wrapper",
]
RUN = """\
import functools, sys
from gateway.cli.main import main
from gateway.compiled import build
from gateway.server.socket_selector import SocketSelector
if build() == "plain":  # a C function that nothing else calls, for callgrind to see
    SocketSelector.select = functools.lru_cache(maxsize=0)(SocketSelector.select)
sys.exit(main())
"""
TOPIC = b"sensors/n1/temperature"
PAYLOAD = b'{"value":21.5,"unit":"C","time":1763740000000}'

PAUSE = 0.01
"""Seconds after each packet with `--turns`: a turn under callgrind takes a few ms."""

FEW = 20
PATIENCE = 600.0
"""Seconds to start or stop: under valgrind all takes fifty times as long."""

SETTINGS = """\
[gateway]
id = "bench"
[[listener]]
host = "127.0.0.1"
port = {port}
"""
UPLINK = """\
[uplink]
url = "mqtt://127.0.0.1:{fleet}"
[[uplink.rule]]
topic = "sensors/#"
"""
MOSQUITTO = """\
listener {port} 127.0.0.1
allow_anonymous true
"""
BRIDGE = """\
connection fleet
address 127.0.0.1:{fleet}
topic sensors/# out 1
"""


class Client:
    """A client of MQTT 3.1.1 that sends and awaits one packet at a time."""

    pause = 0.0  # seconds after each packet that it sends

    def __init__(self, port: int, name: str, *, clean: bool = True) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), PATIENCE)
        self._socket.settimeout(PATIENCE)
        body = b"\0\4MQTT\4" + bytes([2 * clean]) + b"\0\0" + _text(name.encode())
        self.send(0x10, body)
        assert self.receive()[1][1] == 0, "refused"

    def send(self, first: int, body: bytes) -> None:
        assert len(body) < 128, "its length has one byte"
        self.write(bytes([first, len(body)]) + body)

    def write(self, data: bytes) -> None:
        self._socket.sendall(data)
        if self.pause:
            time.sleep(self.pause)

    def receive(self) -> tuple[int, bytes]:
        first, size = self._exactly(2)
        if size >= 128:
            size += 128 * self._exactly(1)[0] - 128
        return first, self._exactly(size)

    def subscribe(self, topic_filter: bytes, qos: int = 1) -> None:
        self.send(0x82, b"\0\1" + _text(topic_filter) + bytes([qos]))
        assert self.receive()[1][2] == qos, "refused"

    def publish(self, number: int) -> None:
        """Publish at QoS 1 and await the PUBACK."""
        self.send(0x32, _text(TOPIC) + struct.pack(">H", 1 + number % 60_000) + PAYLOAD)
        assert self.receive()[0] == 0x40

    def take(self) -> None:
        """Await a message of QoS 1 and acknowledge it."""
        first, body = self.receive()
        assert first & 0xF0 == 0x30
        start = 2 + struct.unpack(">H", body[:2])[0]
        self.send(0x40, body[start : start + 2])

    def close(self) -> None:
        self._socket.close()

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self._socket.recv(size - len(data))
            assert more, "the connection ended"
            data += more
        return data


def _text(data: bytes) -> bytes:
    return struct.pack(">H", len(data)) + data


def local(port: int, _: int, messages: int) -> None:
    """QoS 1 to one subscriber, both acknowledgements."""
    _pass(port, port, messages)


def away(port: int, _: int, messages: int) -> None:
    """QoS 1 to a persistent session that is away."""
    subscriber = Client(port, "subscriber", clean=False)
    subscriber.subscribe(b"sensors/#")
    subscriber.close()
    publisher = Client(port, "publisher")
    for number in range(messages):
        publisher.publish(number)


def forwarded(port: int, fleet: int, messages: int) -> None:
    """QoS 1 to the fleet's broker, with its PUBACK."""
    _pass(port, fleet, messages)


def _pass(port: int, other: int, messages: int) -> None:
    """Publish at one port and await each message at the other, which may be the same."""
    publisher, subscriber = Client(port, "publisher"), Client(other, "subscriber")
    subscriber.subscribe(b"#")
    for number in range(messages):
        publisher.publish(number)
        subscriber.take()


def qos_2(port: int, _: int, messages: int) -> None:
    """QoS 2 to one subscriber, all four packets on both sides."""
    publisher, subscriber = Client(port, "publisher"), Client(port, "subscriber")
    subscriber.subscribe(b"#", 2)
    for number in range(messages):
        identifier = struct.pack(">H", 1 + number % 60_000)
        publisher.send(0x34, _text(TOPIC) + identifier + PAYLOAD)
        assert publisher.receive()[0] == 0x50
        publisher.send(0x62, identifier)
        assert publisher.receive()[0] == 0x70
        body = subscriber.receive()[1]
        start = 2 + struct.unpack(">H", body[:2])[0]
        subscriber.send(0x50, body[start : start + 2])
        assert subscriber.receive()[0] == 0x62
        subscriber.send(0x70, body[start : start + 2])


def churn(port: int, _: int, messages: int) -> None:
    """A device connects, subscribes, publishes once and disconnects."""
    for number in range(messages):
        device = Client(port, f"device{number % 20}")
        device.subscribe(b"commands/device%d/#" % (number % 20))
        device.publish(number)
        device.send(0xE0, b"")
        device.close()


def retained(port: int, _: int, messages: int) -> None:
    """Retained messages on 500 topics, each on disk before the PUBACK."""
    publisher = Client(port, "publisher")
    for number in range(messages):
        topic = _text(b"site/%d/state" % (number % 500))
        publisher.send(0x33, topic + struct.pack(">H", 1 + number % 60_000) + PAYLOAD)
        assert publisher.receive()[0] == 0x40


STORIES: dict[str, Callable[[int, int, int], None]] = {
    "local": local,
    "away": away,
    "forwarded": forwarded,
    "qos_2": qos_2,
    "churn": churn,
    "retained": retained,
}


def gateway(tree: Path, folder: Path, port: int, fleet: int) -> tuple[list[str], dict[str, str]]:
    """Return the command of a gateway of that tree, and its environment."""
    text = SETTINGS + (UPLINK if fleet else "")
    (folder / "gateway.toml").write_text(text.format(port=port, fleet=fleet), encoding="utf-8")
    command = [sys.executable, "-P", "-c", RUN, "run", "--config", str(folder / "gateway.toml")]
    environment = dict(os.environ, PYTHONPATH=str(tree), PYTHONHASHSEED="0")
    return [*command, "--data", str(folder / "data")], environment


def mosquitto(folder: Path, port: int, fleet: int) -> tuple[list[str], dict[str, str]]:
    """Return the same of Mosquitto, with a bridge if there is a fleet."""
    text = MOSQUITTO + (BRIDGE if fleet else "")
    (folder / "mosquitto.conf").write_text(text.format(port=port, fleet=fleet), encoding="utf-8")
    return ["mosquitto", "-c", str(folder / "mosquitto.conf")], dict(os.environ)


@contextmanager
def running(command: list[str], environment: dict[str, str], port: int) -> Iterator[list[str]]:
    """Run a program until the block ends; the list then has what it wrote."""
    outputs: list[str] = []
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=output)
        try:
            await_port(process, port)
            yield outputs
            process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE)
        finally:
            process.kill()
            process.wait()
            output.seek(0)
            outputs.append(output.read())


def await_port(process: subprocess.Popen[bytes], port: int) -> None:
    """Wait until a program listens; raises SystemExit if it ends or takes too long."""
    deadline = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise SystemExit(f"nothing listens at {port}")


def instructions(tree: Path | None, story: str, messages: int, counter: list[str]) -> int:
    """Return what a whole run costs, from start to end, as `counter` counts."""
    with tempfile.TemporaryDirectory() as name:
        folder, port = Path(name), free_port()
        fleet = free_port() if story == "forwarded" else 0
        command, environment = (
            mosquitto(folder, port, fleet) if tree is None else gateway(tree, folder, port, fleet)
        )
        with running([*counter, *command], environment, port) as outputs:
            if fleet:
                (folder / "fleet").mkdir()
                with running(*mosquitto(folder / "fleet", fleet, 0), fleet):
                    STORIES[story](port, fleet, messages)
            else:
                STORIES[story](port, fleet, messages)
    found = re.search(r"(?:I +refs|Collected +): +([\d,]+)", outputs[0])
    if found is None:
        raise SystemExit(outputs[0][-2_000:])
    return int(found[1].replace(",", ""))


def a_message(tree: Path | None, story: str, many: int, counter: list[str]) -> int:
    """Return what one message costs."""
    few = instructions(tree, story, FEW, counter)
    return (instructions(tree, story, FEW + many, counter) - few) // many


def main() -> None:
    """Print a row for each story and program."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("stories", nargs="*", metavar="STORY", help=", ".join(STORIES))
    parser.add_argument("--tree", action="append", default=[], metavar="NAME=PATH")
    parser.add_argument("--messages", type=int, default=300)
    parser.add_argument("--turns", action="store_true")
    options = parser.parse_args()
    counter = TURNS if options.turns else VALGRIND
    Client.pause = PAUSE if options.turns else 0.0
    trees = [each.partition("=")[::2] for each in options.tree] or [("tidegate", str(ROOT))]
    mosquittos = [] if options.turns else [("mosquitto", None)]
    programs = [*mosquittos, *((name, Path(path)) for name, path in trees)]
    for story in options.stories or STORIES:
        if story not in STORIES:
            parser.error(f"there is no story {story!r}, only {', '.join(STORIES)}")
        for name, tree in programs:
            count = a_message(tree, story, options.messages, counter)
            print(f"| {story} | {name} | {count:,} |", flush=True)


if __name__ == "__main__":
    main()
