"""The board's flash, a file: littlefs on erase blocks, and power that fails at a write."""

import os
import sys

import vfs
from ending import POWER_CUT, end

ERASE_BLOCK = 4096


class Flash:
    """A block device in a file; what was written before a power cut stays."""

    def __init__(self, path: str, blocks: int) -> None:
        self._blocks = blocks
        self._budget = open(path + ".writes", "r+b")
        try:
            self._file = open(path, "r+b")
        except OSError:
            self._file = open(path, "w+b")
            self._file.write(b"\xff" * (ERASE_BLOCK * blocks))
            self._file.flush()

    def readblocks(self, block: int, data: bytearray, offset: int = 0) -> None:
        self._file.seek(block * ERASE_BLOCK + offset)
        self._file.readinto(data)

    def writeblocks(self, block: int, data: bytes, offset: int = 0) -> None:
        self._spend()
        self._file.seek(block * ERASE_BLOCK + offset)
        self._file.write(data)

    def ioctl(self, request: int, argument: int) -> int:
        if request == 3:
            self._file.flush()
        if request == 4:
            return self._blocks
        if request == 5:
            return ERASE_BLOCK
        if request == 6:
            self._spend()
            self._file.seek(argument * ERASE_BLOCK)
            self._file.write(b"\xff" * ERASE_BLOCK)
        return 0

    def _spend(self) -> None:
        self._budget.seek(0)
        left = int.from_bytes(self._budget.read(8), "little")
        if left == 0:
            self._file.flush()
            end(POWER_CUT)
        if left < 1 << 32:
            self._budget.seek(0)
            self._budget.write((left - 1).to_bytes(8, "little"))
            self._budget.flush()


def mount(path: str, blocks: int) -> None:
    flash = Flash(path, blocks)
    try:
        system = vfs.VfsLfs2(flash)
    except OSError:
        vfs.VfsLfs2.mkfs(flash)
        system = vfs.VfsLfs2(flash)
    vfs.umount("/")
    vfs.mount(system, "/")
    os.chdir("/")
    sys.path[:] = ["", ".frozen", "/lib"]
