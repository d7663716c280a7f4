"""Takes the power from a node's flash at one write after the other; prints what is lost by it.

The file system is the real littlefs, in memory. The clock is the node's own.
"""

import os
import struct
import sys

import vfs
from node import frames
from node.loop import Node
from node.ring import SIZE_MIN
from node.spill import Spill

BLOCKS = 24
BLOCK = 4096
SAMPLES = 70  # of which some fifty are spilled, in four files

FIRST = 10
"""Number of the first one that is written: those before it wait for the gateway in memory."""


class Flash:
    """A block device whose power fails after so many writes; `content` is what stays."""

    def __init__(self, content: bytearray, writes: int) -> None:
        self.content = content
        self.writes = writes

    @property
    def off(self) -> bool:
        return self.writes < 0

    def readblocks(self, block: int, data: bytearray, offset: int = 0) -> int:
        start = block * BLOCK + offset
        data[:] = self.content[start : start + len(data)]
        return 0

    def writeblocks(self, block: int, data: bytes, offset: int = 0) -> int:
        return self._change(block * BLOCK + offset, data)

    def ioctl(self, request: int, argument: int) -> int:
        if request == 4:
            return BLOCKS
        if request == 5:
            return BLOCK
        if request == 6:
            return self._change(argument * BLOCK, b"\xff" * BLOCK)
        return 0

    def _change(self, start: int, data: bytes) -> int:
        self.writes -= 1
        if self.off:
            return -5
        self.content[start : start + len(data)] = data
        return 0


class Cable:
    """Stores what comes and answers it, or loses it."""

    def __init__(self, stores: bool) -> None:
        self._stores = stores
        self._answers = b""
        self.clocks: dict[tuple[int, int], int] = {}
        self.twice = 0

    def read(self) -> bytes:
        heard, self._answers = self._answers, b""
        return heard

    def write(self, data: bytes) -> None:
        body = frames.unframe(data[1:-1])
        if not self._stores or body is None:
            return
        boot, sequence, clock = struct.unpack("<IIQ", body[3:19])
        self.twice += (boot, sequence) in self.clocks
        self.clocks[boot, sequence] = clock
        self._answers += frames.frame(b"\x01\x02\x00" + body[3:11])


class Sensor:
    """Says much that is new each time."""

    count = 0

    def read(self) -> "list[tuple[str, str, None]]":
        self.count += 1
        text = str(10**29 + self.count * 7919)
        return [("text" + str(number), text, None) for number in range(4)]


class Clock:
    now = 0

    def ms(self) -> int:
        return self.now


def run(flash: Flash, boot: int, cable: Cable, samples: int, steps: int) -> int:
    """Let a node live for so many samples and steps, or until the power fails.

    Return how many entries were on the flash then that it had written whole.
    """
    clock = Clock()
    spill = Spill("/flash/spill", 1 << 17, boot)
    kept = 0
    node = Node("n1", boot, cable, Sensor(), clock, 1000, waiting_bytes=SIZE_MIN, spill=spill)
    for step in range(steps):
        clock.now = 1000 * min(step, samples) + step
        node.step()
        if flash.off:
            break
        kept = sum([head[3] for head in [spill._read_head(each) for each in spill._files] if head])
    return kept


def mount(flash: Flash) -> None:
    vfs.mount(vfs.VfsLfs2(flash), "/flash")


def main() -> None:
    fresh = Flash(bytearray(BLOCKS * BLOCK), 1 << 30)
    vfs.VfsLfs2.mkfs(fresh)
    lost: list[object] = []
    repeated = cuts = most = 0
    step = int(sys.argv[1])
    for writes in range(1, 1 << 30, step):
        flash = Flash(bytearray(fresh.content), writes)
        mount(flash)
        kept = run(flash, 1, Cable(stores=False), SAMPLES, SAMPLES)
        died = flash.off
        vfs.umount("/flash")
        after = Flash(flash.content, 1 << 30)
        mount(after)
        cable = Cable(stores=True)
        run(after, 2, cable, 3, 200)
        numbers = sorted([number for boot, number in cable.clocks if boot == 1])
        if numbers != list(range(FIRST, FIRST + len(numbers))) or len(numbers) < kept:
            lost.append((writes, kept, numbers))
        left = os.listdir("/flash/spill")  # noqa: PTH208 - MicroPython
        if left or sum([boot == 2 for boot, _ in cable.clocks]) < 4:
            lost.append((writes, "left"))
        vfs.umount("/flash")
        repeated += cable.twice
        cuts += 1
        most = max(most, len(numbers))
        if not died:
            break
    print("lost", lost, "repeated", repeated)
    print(cuts, most)


main()
