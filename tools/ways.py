"""Counts the files, functions and calls of the gateway that six stories pass through.

    PYTHONPATH=.:firmware python tools/ways.py          # prints the table
    PYTHONPATH=.:firmware python tools/ways.py --list STORY   # and each function of one story

A gateway runs in a process of its own with a profile hook. Each story is told often enough for
its caches to be warm, then it is recorded several times; the table has the telling with the fewest
calls, which met no timer. Only functions of `gateway/` count, in the event loop and in the thread
of the writer.
"""

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import tty
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
OURS = str(ROOT / "gateway") + os.sep

WARM = 60
"""Tellings before the first that is recorded: more than any cache needs to learn a topic."""

RECORDED = 7
QUIET = 0.15
"""Seconds without a call after which a story is over: longer than any commit is put off."""

SECONDS = 30.0
"""How long a gateway may take to start, or to answer."""


class Way(NamedTuple):
    """What one telling of a story passed through: calls by `file:function`."""

    calls: dict[str, int]

    @property
    def files(self) -> int:
        """How many files it entered."""
        return len({name.partition(":")[0] for name in self.calls})

    @property
    def functions(self) -> int:
        """How many different functions it called."""
        return len(self.calls)

    @property
    def total(self) -> int:
        """How many calls it made."""
        return sum(self.calls.values())


# The gateway's process ------------------------------------------------------------------------


def run_gateway(config: str, data: str, results: str) -> None:
    """Run a gateway that records on SIGUSR1, and writes what it recorded on SIGUSR2."""
    found: Counter[str] = Counter()
    last = [0.0]
    recording = False

    def profile(frame: FrameType, event: str, _argument: object) -> None:
        if recording and event == "call" and frame.f_code.co_filename.startswith(OURS):
            code = frame.f_code
            found[f"{code.co_filename[len(OURS) :]}:{code.co_qualname}"] += 1
            last[0] = time.monotonic()

    def begin(*_: object) -> None:
        nonlocal recording
        found.clear()
        last[0] = time.monotonic()
        recording = True

    def end(*_: object) -> None:
        nonlocal recording
        recording = False
        written = Path(results + ".new")
        written.write_text(json.dumps({"calls": found, "quiet": time.monotonic() - last[0]}))
        written.replace(results)

    signal.signal(signal.SIGUSR1, begin)
    signal.signal(signal.SIGUSR2, end)
    threading.setprofile(profile)
    sys.setprofile(profile)
    from gateway.cli.main import main

    sys.exit(main(["run", "--config", config, "--data", data]))


# The stories' process --------------------------------------------------------------------------


class Client:
    """An MQTT client that sends packets as bytes and reads whole packets."""

    def __init__(self, port: int, client_id: str, *, version: int = 4, clean: bool = True) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), SECONDS)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._stream = self._socket.makefile("rb")
        properties = b"" if version == 4 else b"\0" if clean else b"\x05\x11\xff\xff\xff\xff"
        name = client_id.encode()
        self.send(
            0x10,
            b"\0\4MQTT" + bytes([version, 2 * clean]) + b"\0\0" + properties + _text(name),
        )
        self.expect(0x20)

    def send(self, first: int, body: bytes) -> None:
        """Send a packet of up to 16,383 bytes."""
        size = len(body)
        length = bytes([size]) if size < 128 else bytes([size & 127 | 128, size >> 7])
        self._socket.sendall(bytes([first]) + length + body)

    def expect(self, kind: int) -> bytes:
        """Return the body of the next packet, which must be of this type."""
        (first,) = self._stream.read(1)
        size = shift = 0
        while True:
            (byte,) = self._stream.read(1)
            size |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        body = self._stream.read(size)
        if first & 0xF0 != kind:
            raise ConnectionError(f"{first:02X} {body!r} instead of {kind:02X}")
        return body

    def close(self) -> None:
        """Disconnect."""
        self.send(0xE0, b"")
        self._stream.close()
        self._socket.close()


def _text(text: bytes) -> bytes:
    return len(text).to_bytes(2, "big") + text


class Stage:
    """A gateway under the hook, and what a story needs to be told beside it."""

    def __init__(self, folder: Path, stack: ExitStack, config: str) -> None:
        from tests.support.ports import free_port
        from tests.support.waiting import listens, until

        self.stack = stack
        self.folder = folder
        self.port = free_port()
        self._results = folder / "results.json"
        file = folder / "gateway.toml"
        file.write_text(f"{config}\n[[listener]]\nport = {self.port}\n")
        arguments = [str(file), str(folder / "data"), str(self._results)]
        with (folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, __file__, "--gateway", *arguments],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                stdout=log,
                stderr=log,
            )
        stack.callback(self._stop)
        self._log = (folder / "log").read_text
        until(lambda: listens(self.port), "the gateway listens", self._log)

    def wait_for(self, line: str) -> None:
        """Return when the gateway has logged a line that holds this text."""
        from tests.support.waiting import until

        until(lambda: line in self._log(), line, self._log)

    def client(self, client_id: str, **how: Any) -> Client:
        """Return a connected client, which disconnects at the end."""
        client = Client(self.port, client_id, **how)
        self.stack.callback(client.close)
        return client

    def record(self, tell: Callable[[int], object], recorded: int = RECORDED) -> Way:
        """Return the way of the telling with the fewest calls; `tell` gets its number."""
        for number in range(WARM):
            tell(number)
        ways = [self._once(tell, WARM + number) for number in range(recorded)]
        return min(ways, key=lambda way: way.total)

    def _once(self, tell: Callable[[int], object], number: int) -> Way:
        time.sleep(QUIET)
        self._process.send_signal(signal.SIGUSR1)
        time.sleep(0.02)  # a signal is handled between two rounds of the loop
        tell(number)
        while True:
            time.sleep(QUIET)
            result = self._written()
            if result["quiet"] >= QUIET / 2:
                return Way(result["calls"])

    def _written(self) -> dict[str, Any]:
        from tests.support.waiting import until

        self._results.unlink(missing_ok=True)
        self._process.send_signal(signal.SIGUSR2)
        until(self._results.exists, "what was recorded")
        result: dict[str, Any] = json.loads(self._results.read_text())
        return result

    def _stop(self) -> None:
        self._process.terminate()
        self._process.wait(SECONDS)


CONFIG = """
[gateway]
id = "ways"
[broker]
sys_interval = 3600
"""


LIVE = "commit_within = 1\n"
"""On a busy machine, too, the fleet's PUBACK comes before a message has to be on disk."""


@contextmanager
def stage(config: str = "") -> Iterator[Stage]:
    """Give a gateway with this configuration besides what all stories have."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        yield Stage(Path(folder), stack, CONFIG + config)


TOPIC = b"sensors/n1/temperature"


def publisher(on: Stage, topic: bytes = TOPIC) -> Callable[[int], None]:
    """Return what publishes a reading at QoS 1 and reads its PUBACK."""
    client = on.client("publisher")

    def publish(number: int) -> None:
        packet_id = (number % 65_535 + 1).to_bytes(2, "big")
        client.send(0x32, _text(topic) + packet_id + b'{"value":%d}' % (30 + number))
        client.expect(0x40)

    return publish


def to_a_subscriber(on: Stage, where: bytes | None = None) -> Way:
    """Record a QoS 1 publish to one subscriber, with both acknowledgements."""
    subscriber = on.client("subscriber", version=4 if where is None else 5)
    version_5 = b"" if where is None else _where(where)
    subscriber.send(0x82, b"\0\1" + version_5 + _text(TOPIC) + b"\1")
    subscriber.expect(0x90)
    publish = publisher(on)

    def tell(number: int) -> None:
        publish(number)
        body = subscriber.expect(0x30)
        at = 2 + len(TOPIC)
        subscriber.send(0x40, body[at : at + 2])

    return on.record(tell)


def _where(expression: bytes) -> bytes:
    """Return the properties of a SUBSCRIBE with this `$where`."""
    pair = b"\x26" + _text(b"$where") + _text(expression)
    return bytes([len(pair)]) + pair


def local() -> Way:
    """Tell how a message comes to a subscriber."""
    with stage() as on:
        return to_a_subscriber(on)


def filtered() -> Way:
    """Tell the same where the subscriber has a `$where`."""
    with stage() as on:
        return to_a_subscriber(on, b"payload.value > 20")


def away() -> Way:
    """Tell how a message comes to SQLite for a session whose client is away."""
    with stage() as on:
        session = Client(on.port, "away", version=5, clean=False)
        session.send(0x82, b"\0\1\0" + _text(b"sensors/#") + b"\1")
        session.expect(0x90)
        session.close()
        return on.record(publisher(on))


def forwarded() -> Way:
    """Tell how a message comes to the fleet's broker, with its PUBACK."""
    from tests.support.processes.mosquitto import Mosquitto

    with tempfile.TemporaryDirectory() as folder:
        fleet = Mosquitto(Path(folder))
        fleet.start()
        try:
            with stage(f'[uplink]\nurl = "mqtt://127.0.0.1:{fleet.port}"\n{LIVE}') as on:
                watch = Client(fleet.port, "watch")
                on.stack.callback(watch.close)
                watch.send(0x82, b"\0\1" + _text(b"tidegate/ways/data/#") + b"\0")
                watch.expect(0x90)
                on.wait_for(": connected")
                publish = publisher(on)

                def tell(number: int) -> None:
                    publish(number)
                    watch.expect(0x30)

                return on.record(tell)
        finally:
            fleet.kill()


def subscribe() -> Way:
    """Tell how a SUBSCRIBE with a `$where` is accepted."""
    with stage("maximum_filtered_subscriptions = 1000\n") as on:
        client = on.client("subscriber", version=5)

        def tell(number: int) -> None:
            packet_id = (number + 1).to_bytes(2, "big")
            topic_filter = b"sensors/n%d/temperature" % number
            where = _where(b"payload.value > %d" % (20 + number))  # one that nobody has had
            body = packet_id + where + _text(topic_filter) + b"\1"
            client.send(0x82, body)
            client.expect(0x90)

        return on.record(tell)


def serial() -> Way:
    """Tell how a frame of three readings comes to a rule, a commit and its acknowledgement."""
    from node.frames import encode_reading, encode_readings

    node, other = os.openpty()
    tty.setraw(other)
    line = f'[[serial]]\nport = "{os.ttyname(other)}"\nnode = "n1"\n'
    with (
        tempfile.TemporaryDirectory() as landing,
        stage(f'[uplink]\ndirectory = "{landing}"\n{line}') as on,
    ):
        on.wait_for(": open")  # what came before, an opening port throws away

        def tell(number: int) -> None:
            quantities = (("temperature", "°C"), ("humidity", "%"), ("pressure", "hPa"))
            readings = [encode_reading(name, (200 + number, -1), unit) for name, unit in quantities]
            os.write(node, encode_readings("n1", 7, number + 1, 1500, 0, 0, None, readings))
            answer = b""
            while answer.count(b"\0") < 2:
                answer += os.read(node, 4096)

        way = on.record(tell, 2 * RECORDED)  # more timers run beside it than beside the others
    os.close(node)
    os.close(other)
    return way


STORIES: dict[str, Callable[[], Way]] = {
    "QoS 1 publish to one subscriber, both acknowledgements": local,
    "the same where the subscriber has a $where": filtered,
    "the same to an away session, to SQLite": away,
    "the same forwarded by MQTT, with the fleet's PUBACK": forwarded,
    "SUBSCRIBE with $where payload.value > 20": subscribe,
    "a serial frame of three readings to rule, commit, acknowledgement": serial,
}


def show(listed: str | None) -> None:
    """Print the table, and each function of the story whose function has this name."""
    print("| story | files | functions | calls |\n| --- | --: | --: | --: |")
    for name, story in STORIES.items():
        if listed not in (None, story.__name__):
            continue
        way = story()
        print(f"| {name} | {way.files} | {way.functions} | {way.total} |", flush=True)
        if listed is not None:
            for function, calls in sorted(way.calls.items()):
                print(f"{calls:5} {function}")


def main() -> None:
    """Read the command line."""
    if sys.argv[1:2] == ["--gateway"]:
        run_gateway(*sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__)
    names = [story.__name__ for story in STORIES.values()]
    parser.add_argument("--list", choices=names, help="show each function of this story")
    show(parser.parse_args().list)


if __name__ == "__main__":
    main()
