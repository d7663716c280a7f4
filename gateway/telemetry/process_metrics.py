"""The process figures of Prometheus' client libraries, with their names."""

import os
import resource
from pathlib import Path

PROC_SELF_IO = Path("/proc/self/io")


STAT = Path("/proc/self/stat")
STATM = Path("/proc/self/statm")

FIRST = 3
"""The number of the first field after the name in proc(5)."""
HELP = {
    "process_cpu_seconds_total": "Total user and system CPU time spent in seconds.",
    "process_resident_memory_bytes": "Resident memory size in bytes.",
    "process_virtual_memory_bytes": "Virtual memory size in bytes.",
    "process_start_time_seconds": "Start time of the process since unix epoch in seconds.",
    "process_open_fds": "Number of open file descriptors.",
    "process_max_fds": "Maximum number of open file descriptors.",
    "process_threads": "Number of threads.",
}


def bytes_written(file: Path = PROC_SELF_IO) -> int | None:
    """Return the bytes written to storage since the start, less cancelled writes.

    None if the kernel does not account for it, or does not permit reading it.
    """
    try:
        lines = file.read_text().splitlines()
        fields = {name: int(value) for name, _, value in (line.partition(":") for line in lines)}
        return max(0, fields["write_bytes"] - fields["cancelled_write_bytes"])
    except (OSError, KeyError, ValueError):
        return None


def process_metrics() -> str:
    """Return them in Prometheus' text format; "" if the kernel does not report them."""
    try:
        values = _values()
    except OSError:
        return ""
    return "".join(
        f"# HELP {name} {HELP[name]}\n"
        f"# TYPE {name} {'counter' if name.endswith('_total') else 'gauge'}\n"
        f"{name} {value}\n"
        for name, value in values.items()
    )


def resident_bytes() -> int:
    """Return the memory of this process, 0 if unknown."""
    try:
        fields = STATM.read_text(encoding="ascii").split()
    except OSError:
        return 0
    return int(fields[1]) * resource.getpagesize()


def _values() -> dict[str, float]:
    fields = STAT.read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
    user, system, threads, start, size, pages = (
        int(fields[number - FIRST]) for number in (14, 15, 20, 22, 23, 24)
    )
    ticks = os.sysconf("SC_CLK_TCK")
    return {
        "process_cpu_seconds_total": (user + system) / ticks,
        "process_resident_memory_bytes": pages * resource.getpagesize(),
        "process_virtual_memory_bytes": size,
        "process_start_time_seconds": _booted_at() + start / ticks,
        "process_open_fds": len(os.listdir("/proc/self/fd")),  # noqa: PTH208 - names only
        "process_max_fds": resource.getrlimit(resource.RLIMIT_NOFILE)[0],
        "process_threads": threads,
    }


def _booted_at() -> int:
    """Return when the machine started, in seconds since 1970."""
    for line in Path("/proc/stat").read_text(encoding="ascii").splitlines():
        name, _, value = line.partition(" ")
        if name == "btime":
            return int(value)
    return 0
