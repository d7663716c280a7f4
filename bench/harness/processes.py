"""What the kernel says of a process and its descendants: processor time and memory."""

import contextlib
import os
import time
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

TICKS = os.sysconf("SC_CLK_TCK")
PARENT, USER, SYSTEM, CHILDREN_USER, CHILDREN_SYSTEM = 1, 11, 12, 13, 14
"""Fields of `/proc/<pid>/stat` behind the name, proc(5)."""

SCHEDULER_CLOCK = 2
"""The last bits of a process's clock, CPUCLOCK_SCHED of the kernel."""

SETTLE_ROUNDS, SETTLE_SECONDS, SETTLE_BYTES = 10, 0.3, 65_536
"""How long, and how still, memory must be to count as settled."""


class Processor(NamedTuple):
    """Seconds of processor time."""

    user: float
    system: float

    @property
    def total(self) -> float:
        """Seconds in both."""
        return self.user + self.system

    def since(self, before: "Processor") -> "Processor":
        """Return what was used after `before`."""
        return Processor(self.user - before.user, self.system - before.system)


def _stat(process: int | str) -> list[str]:
    """Return the fields behind the name; none of a process that is gone."""
    try:
        text = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return text.rpartition(")")[2].split()


def tree(process: int) -> list[int]:
    """Return the process and all its living descendants."""
    children: defaultdict[int, list[int]] = defaultdict(list)
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and (fields := _stat(folder.name)):
            children[int(fields[PARENT])].append(int(folder.name))
    found = [process]
    for parent in found:
        found += children[parent]
    return found


def processor(process: int) -> Processor:
    """Return what the process, its descendants and those it has waited for have used."""
    user = system = 0
    for fields in filter(None, map(_stat, tree(process))):
        user += int(fields[USER]) + int(fields[CHILDREN_USER])
        system += int(fields[SYSTEM]) + int(fields[CHILDREN_SYSTEM])
    return Processor(user / TICKS, system / TICKS)


def processor_seconds(process: int) -> float:
    """Return what the process and its living descendants have used, to the nanosecond."""
    seconds = 0.0
    for member in tree(process):
        with contextlib.suppress(OSError):
            seconds += time.clock_gettime(~member << 3 | SCHEDULER_CLOCK)
    return seconds


def written(process: int) -> int:
    """Return the bytes that the process and its living descendants have had written to disks."""
    count = 0
    for member in tree(process):
        with contextlib.suppress(OSError):
            text = Path(f"/proc/{member}/io").read_text(encoding="utf-8")
            count += int(dict(line.split(": ") for line in text.splitlines())["write_bytes"])
    return count


def memory(process: int) -> int:
    """Return the bytes of memory that the process and its descendants have, shared ones in each."""
    return _rolled_up(process, "Rss:")


def private_memory(process: int) -> int:
    """Return the bytes that they have written to, which no other process can share."""
    return _rolled_up(process, "Private_Dirty:")


def _rolled_up(process: int, name: str) -> int:
    found = 0
    for member in tree(process):
        try:
            text = Path(f"/proc/{member}/smaps_rollup").read_text(encoding="utf-8")
        except OSError:
            continue
        for words in map(str.split, text.splitlines()[1:]):
            if words[0] == name:
                found += int(words[1]) * 1024
    return found


def settled_memory(process: int) -> int:
    """Return the memory once it has stopped moving, or after three seconds."""
    last = memory(process)
    for _ in range(SETTLE_ROUNDS):
        time.sleep(SETTLE_SECONDS)
        now = memory(process)
        if abs(now - last) < SETTLE_BYTES:
            return now
        last = now
    return last
