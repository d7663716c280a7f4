"""What a gateway that starts on the rest of a disk still knows of what was promised."""

import asyncio
import json
import sqlite3
from base64 import b64decode
from collections import Counter, defaultdict
from collections.abc import Iterable
from contextlib import AsyncExitStack, closing
from pathlib import Path
from typing import Any

from node.frames import encode_reading, encode_readings

from crashtest.client import PATIENCE
from crashtest.numbers import name_in
from gateway.config.load import load
from tests.support.disk.promises import Number, Promises
from tests.support.disk.storage import until
from tests.support.gateway_here import Gateway
from tests.support.nodes.serial_line import SerialLine
from tests.support.ports import free_port
from tests.support.power_cut.clients import collect, finish, work
from tests.support.processes.crash_gateway import retained

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
[[channel]]
name = "jobs"
filter = "crash/#"
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
            await gateway.start()
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
        delays = gateway.broker.delays
        await until(lambda: not delays.waiting, PATIENCE)
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
        missing = await work(port, promises.kept - promises.worked)
        self._expect(not missing, f"no consumer of the channel got {sorted(missing)[:5]}")

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
        reported = self._reported()
        known = {key for keys in landed.values() for key in keys}
        delivered = {key for key, outcomes in reported.items() if "delivered" in outcomes}
        self._expect(delivered <= known, f"told, and not there: {sorted(delivered - known)[:5]}")
        silent = sorted(self._numbers_on_disk() - reported.keys())
        self._expect(not silent, f"neither does the ledger know {silent[:5]}, nor the outbox")

    def _reported(self) -> defaultdict[tuple[str, str, int], set[str]]:
        """Return the outcomes of each number, as the ledger says."""
        rows: list[Any] = []
        for file in self._image.glob("land/cut/ledger/*.jsonl"):
            for entry in map(json.loads, file.read_text().splitlines()):
                rows += [(entry["epoch"], entry["stream"], *each) for each in entry["ranges"]]
        rows += self._query("SELECT epoch, stream, first, last, outcome, '' FROM ledger")
        rows += self._query("SELECT epoch, stream, seq, seq, 'waits', '' FROM outbox")
        reported = defaultdict(set)
        for epoch, stream, first, last, outcome, _ in rows:
            for number in range(first, last + 1):
                reported[epoch, stream, number].add(outcome)
        return reported

    def _numbers_on_disk(self) -> set[tuple[str, str, int]]:
        """Return all numbers up to the last that was on disk when a start had ended."""
        return {
            (epoch, stream, number)
            for epoch, last in self._query("SELECT epoch, last FROM starts")
            for stream, highest in json.loads(last).items()
            for number in range(1, highest + 1)
        }

    def _query(self, statement: str) -> list[Any]:
        with closing(sqlite3.connect(self._image / "data/tidegate.db")) as database:
            return database.execute(statement).fetchall()


def _key(record: dict[str, Any]) -> tuple[str, str, int]:
    return record["epoch"], record["stream"], record["seq"]
