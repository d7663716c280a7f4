"""The power goes at any moment: what was promised before it is there after the next start."""

import asyncio
import re
import shutil
from pathlib import Path
from random import Random
from typing import Any

import pytest

from gateway.mqtt.errors import MqttError
from tests.crash.conftest import LONG, MakeGateway
from tests.support.disk.disk_recorder import Operation, operations, recorder
from tests.support.disk.promises import Promises
from tests.support.nodes.serial_line import SerialLine
from tests.support.power_cut.clients import live
from tests.support.power_cut.disk import Disk
from tests.support.power_cut.verdict import CONFIGURATION, Verdict, insist

CUTS = 50 if LONG else 6
"""Moments of a recording at which the power goes, half of them close behind an answer."""

RECORDINGS = max(1, LONG // 20)

LIVES = 2
"""Starts of the gateway in a recording; each ends in order, and what was gathered lands."""

FRAMES = 10
"""Serial frames in each life."""

GROUPED = """
[[durability]]
topic = "sensors/#"
class = "batch(300)"
"""


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
        if number:  # frames whose commits wait for others
            text += GROUPED
        gateway = make_gateway(text, wrapper=recorder(trace))
        gateway.data = folder / "disk" / "data"
        await gateway.start()
        frames = range(FRAMES * number, FRAMES * number + FRAMES)
        await asyncio.gather(live(gateway.port, random, number), insist(line, frames))
        assert gateway.stop() == 0
        first = calls[-1].ended + 1 if calls else 0
        calls += operations(trace.read_text(), first)
    return calls


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


@pytest.mark.slow
@pytest.mark.strace
# A disk that syncs nothing ends the comparison in the middle of a client's packet.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
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
    try:
        noticed = await cuts.cut(calls[-1].ended, lies=True) != []
    except (ValueError, MqttError):  # what came is no packet, or none of the messages sent
        noticed = True
    assert noticed, "a disk that syncs nothing was not noticed"


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


def test_what_was_only_looked_at_is_received_once() -> None:
    call = '7 recvfrom(5<socket:[3]>, "\\x10\\x00", {}, NULL, NULL) = 2'
    text = "\n".join(map(call.format, ["257, MSG_PEEK", "262144, 0"]))
    assert [each.ended for each in operations(text)] == [1]


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
