"""The power goes at any moment: what was promised before it is there after the next start."""

import asyncio
import json
import re
import shutil
import sqlite3
from base64 import b64decode
from collections import Counter, defaultdict
from collections.abc import Iterable
from contextlib import AsyncExitStack, closing
from pathlib import Path
from random import Random
from typing import Any

import pytest
from node.frames import encode_reading, encode_readings

from gateway.app.gateway import Gateway
from gateway.app.start import start
from gateway.cli.crashtest.client import PATIENCE
from gateway.cli.crashtest.numbers import name_in
from gateway.config.load import load
from tests.crash.conftest import LONG, MakeGateway
from tests.support.crash_gateway import retained
from tests.support.disk_recorder import Operation, operations, recorder
from tests.support.ports import free_port
from tests.support.power_cut import Disk
from tests.support.power_cut_clients import (
    collect,
    finish,
    live,
)
from tests.support.promises import Number, Promises
from tests.support.serial_line import SerialLine

CUTS = 50 if LONG else 10
"""Moments of a recording at which the power goes, half of them close behind an answer."""

RECORDINGS = max(1, LONG // 20)

LIVES = 2
"""Starts of the gateway in a recording; each ends in order, and what was gathered lands."""

FRAMES = 10
"""Serial frames in each life."""

NODE, BOOT = "n1", 7

CONFIGURATION = """\
[gateway]
id = "cut"
[[listener]]
host = "127.0.0.1"
port = {port}
[uplink]
directory = "{landing}"
[[uplink.rule]]
topic = "crash/#"
[[uplink.rule]]
topic = "sensors/#"
[[serial]]
port = "LINE"
node = "n1"
"""

AWAY = ("away", "m1", "m2")


def frame(sequence: int) -> bytes:
    reading = encode_reading("count", sequence, "")
    return encode_readings(NODE, BOOT, sequence, 1500, 0, 0, None, [reading])


async def insist(line: SerialLine, sequences: Iterable[int]) -> None:
    """Send frames as a node does: again and again until each is acknowledged."""
    missing = set(sequences)
    async with asyncio.timeout(PATIENCE):
        while missing:
            for sequence in sorted(missing):
                line.send(frame(sequence))
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.1)
            missing -= {acknowledged(body) for body in line.bodies()}


def acknowledged(body: bytes) -> int:
    """Return the sequence number of the frame that this body answers."""
    return int.from_bytes(body[-4:], "little")


@pytest.fixture
def line(tmp_path: Path) -> Any:
    line = SerialLine(tmp_path / "line")
    line.plug()
    yield line
    line.close()


async def record(make_gateway: MakeGateway, line: SerialLine, seed: int) -> list[Operation]:
    """Return all that a gateway did in its lives, in which clients had it promise things."""
    folder = line.path.parent
    text = CONFIGURATION.replace("LINE", line.port).replace("{landing}", str(folder / "disk/land"))
    calls: list[Operation] = []
    random = Random(seed)
    for number in range(LIVES):
        trace = folder / f"trace{number}"
        gateway = make_gateway(text, wrapper=recorder(trace))
        gateway.data = folder / "disk" / "data"
        await gateway.start()
        frames = range(FRAMES * number, FRAMES * number + FRAMES)
        await asyncio.gather(live(gateway.port, random, number), insist(line, frames))
        assert gateway.stop() == 0
        first = calls[-1].ended + 1 if calls else 0
        calls += operations(trace.read_text(), first)
    return calls


class Verdict:
    """Starts a gateway on what is left of a disk, and compares it with what was promised."""

    def __init__(self, image: Path, promises: Promises, line: SerialLine) -> None:
        self.findings: list[str] = []
        self._image = image
        self._promises = promises
        self._line = line

    async def reach(self) -> list[str]:
        """Return a sentence for each broken promise."""
        self._line.unplug()
        self._line.plug()
        text = CONFIGURATION.replace("LINE", self._line.port)
        file = self._image / "gateway.toml"
        file.write_text(text.format(port=free_port(), landing=self._image / "land"))
        async with AsyncExitStack() as stack:
            gateway = Gateway(load(file), self._image / "data", stack)
            await start(gateway, durable=True)
            alarm = gateway.database.salvage
            self._expect(alarm is None, f"the database was taken for damaged: {alarm}")
            await self._talk(gateway)
        self._look_at_records()
        return self.findings

    def _expect(self, condition: object, text: str) -> None:
        if not condition:
            self.findings.append(text)

    async def _talk(self, gateway: Gateway) -> None:
        promises, port = self._promises, gateway.listeners[0].port
        sessions = gateway.broker.sessions
        for name in sorted(promises.sessions & {*AWAY, "online", "willer", "quick", "p2"}):
            self._expect(name in sessions, f"the session of {name} is gone")
        for name in sorted(promises.wills & {"willer"} & sessions.keys()):
            self._expect(sessions[name].will, f"the will of {name} is gone")
        for topic, index in promises.retained.items():
            value = (await retained(port, topic)).encode()
            possible = promises.sent[topic][index:]
            self._expect(value in possible, f"{topic} has {value!r}, not one of {possible}")
        await insist(self._line, [sequence for _, sequence in promises.frames])
        for client_id, waiting in promises.unfinished.items():
            if waiting:
                await finish(port, client_id, waiting)
                promises.kept |= {name_in(each.packet.payload) for each in waiting.values()}
        came = {
            name: await collect(port, name, self.findings)
            for name in (*AWAY, "online")
            if name in sessions
        }
        self._compare(came, sessions)

    def _compare(self, came: dict[str, Counter[Number]], sessions: Any) -> None:
        promises = self._promises
        nobody: Counter[Number] = Counter()
        group = came.get("m1", nobody) + came.get("m2", nobody)
        for number in sorted(promises.kept):
            self._once(number, came.get("away", nobody), "away", "crash/#")
            self._expect(group[number] == 1, f"the group got {number} {group[number]} times")
            again = came.get("online", nobody)[number]
            if number in promises.released:
                self._expect(not again, f"online got {number} again, behind its PUBREL")
            elif number not in promises.delivered and number[0] == "p2":
                self._expect(again == 1, f"online got {number} {again} times")
        quick = sessions.get("quick")
        if "quick" in promises.wills and quick is not None and quick.will is None:
            will = ("quick", 1)
            self._expect(came["away"][will] == 1, f"the will came {came['away'][will]} times")

    def _once(self, number: Number, came: Counter[Number], who: str, topic_filter: str) -> None:
        if topic_filter in self._promises.filters[who]:
            self._expect(came[number] == 1, f"{who} got {number} {came[number]} times")

    def _look_at_records(self) -> None:
        landed: defaultdict[Any, set[tuple[str, str, int]]] = defaultdict(set)
        for file in self._image.glob("land/cut/*.jsonl"):
            for text in file.read_text().splitlines():
                record = json.loads(text)
                payload, key = b64decode(record["payload"]), _key(record)
                if record["topic"].startswith("sensors/"):
                    landed[BOOT, json.loads(payload)["value"]].add(key)
                else:
                    landed[name_in(payload) if payload else key].add(key)
        for each in sorted(self._promises.kept) + sorted(self._promises.frames):
            keys = landed[each]
            self._expect(len(keys) == 1, f"{each} has landed under the keys {keys}")
        known = {key for keys in landed.values() for key in keys}
        told = self._delivered()
        # a live message may land before the ledger has a word of its number on disk
        last = {(epoch, stream): number for epoch, stream, number in sorted(told)}
        unknown = [each for each in sorted(known - told) if each[2] < last.get(each[:2], 0)]
        self._expect(not unknown, f"the ledger does not know {unknown[:5]}")
        self._expect(told <= known, f"delivered, says the ledger: {sorted(told - known)[:5]}")

    def _delivered(self) -> set[tuple[str, str, int]]:
        """Return the numbers of which the ledger says that they were delivered."""
        rows: list[Any] = []
        for file in self._image.glob("land/cut/ledger/*.jsonl"):
            for entry in map(json.loads, file.read_text().splitlines()):
                rows += [(entry["epoch"], entry["stream"], *each) for each in entry["ranges"]]
        with closing(sqlite3.connect(self._image / "data/tidegate.db")) as database:
            rows += database.execute("SELECT epoch, stream, first, last, outcome, '' FROM ledger")
        return {
            (epoch, stream, number)
            for epoch, stream, first, last, outcome, _ in rows
            for number in range(first, last + 1)
            if outcome == "delivered"
        }


def _key(record: dict[str, Any]) -> tuple[str, str, int]:
    return record["epoch"], record["stream"], record["seq"]


def moments(calls: list[Operation], root: Path, random: Random) -> list[int]:
    """Return lines of the recording: any, and those of calls that follow right upon an answer."""
    near = [call.began + 1 for call in calls if call.name in ("sendto", "sendmsg")]
    on_disk = [call.ended + 1 for call in calls if call.file.startswith(str(root))]
    return sorted(random.choices(near, k=CUTS // 2) + random.choices(on_disk, k=CUTS - CUTS // 2))


class Cuts:
    """Cuts the power of one recording at moments, and gathers what was not kept."""

    def __init__(self, calls: list[Operation], root: Path, line: SerialLine, seed: int) -> None:
        self.promised = 0
        self._calls = calls
        self._root = root
        self._line = line
        self._random = Random(seed)

    async def cut(self, moment: int, *, lies: bool = False) -> list[str]:
        """Return what was promised and is not there; a disk that lies keeps nothing by a sync."""
        disk, promises = Disk(self._root), Promises()
        for call in self._calls:
            if call.ended < moment and not (lies and "sync" in call.name):
                disk.apply(call)
            if call.ended < moment or (call.began < moment and call.name.startswith("send")):
                promises.note(call)
        self.promised += len(promises.kept) + len(promises.frames)
        image = self._root.with_name("image")
        shutil.rmtree(image, ignore_errors=True)
        disk.cut(self._random, image)
        findings = await Verdict(image, promises, self._line).reach()
        return [f"cut at {moment} of {self._calls[-1].ended}: {text}" for text in findings]


@pytest.mark.strace
async def test_what_was_promised_before_the_power_went_is_kept(
    make_gateway: MakeGateway, tmp_path: Path, line: SerialLine, seed: int
) -> None:
    root = tmp_path / "disk"
    root.mkdir()
    for number in range(RECORDINGS):
        calls = await record(make_gateway, line, seed + number)
        cuts = Cuts(calls, root, line, seed + number)
        for moment in moments(calls, root, Random(seed + number)):
            assert await cuts.cut(moment) == []
        assert cuts.promised > CUTS
        shutil.rmtree(root)
        root.mkdir()
    assert await cuts.cut(calls[-1].ended, lies=True), "a disk that syncs nothing was not noticed"


def test_a_cut_drops_and_tears_what_was_not_synced_and_nothing_else(tmp_path: Path) -> None:
    root, random = tmp_path / "disk", Random(1)
    text = re.sub(r'"([^"]*)"', _in_hexadecimal, CALLS.replace("ROOT", str(root)))
    seen = set()
    for number in range(60):
        disk = Disk(root)
        for call in operations(text):
            disk.apply(call)
        disk.cut(random, tmp_path / str(number))
        named = {each.name for each in (tmp_path / str(number)).iterdir()}
        assert named in ({"a"}, {"a", "d"}, {"b", "d"})  # in this order
        (file,) = [tmp_path / str(number) / each for each in named - {"d"}]
        content = file.read_bytes()
        assert content[:4] == b"aaaa"
        assert not content[4:].strip(b"\0b")
        seen.add((frozenset(named), content[:600].count(b"b"), len(content)))
    sizes = {size for _, _, size in seen}
    assert sizes == {4, 512, 1024, 1028}  # no block, or all up to one of three
    assert {count for _, count, _ in seen} >= {0, 508, 88, 596}


def _in_hexadecimal(found: re.Match[str]) -> str:
    return '"' + "".join(f"\\x{each:02x}" for each in found.group(1).encode()) + '"'


CALLS = "\n".join(
    [
        '7 openat(AT_FDCWD<ROOT>, "ROOT/a", O_WRONLY|O_CREAT|O_TRUNC, 0666) = 3<ROOT/a>',
        '7 write(3<ROOT/a>, "aaaa", 4) = 4',
        "7 fsync(3<ROOT/a>) = 0",
        "7 fsync(4<ROOT>) = 0",
        '7 pwrite64(3<ROOT/a>, "' + "b" * 1024 + '", 1024, 4 <unfinished ...>',
        '8 mkdir("ROOT/d", 0777) = 0',
        "7 <... pwrite64 resumed>) = 1024",
        '7 rename("ROOT/a", "ROOT/b") = 0',
        '7 mkdir("ROOT/e", 0777) = -1 EEXIST (File exists)',
    ]
)
