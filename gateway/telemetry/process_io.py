"""Bytes that this process wrote to disks (proc(5), /proc/self/io)."""

from pathlib import Path

PROC_SELF_IO = Path("/proc/self/io")


def bytes_written(file: Path = PROC_SELF_IO) -> int | None:
    """Return the bytes written to storage since the start, less cancelled writes.

    None where the kernel does not account for it, or does not let us read it.
    """
    try:
        lines = file.read_text().splitlines()
        fields = {name: int(value) for name, _, value in (line.partition(":") for line in lines)}
        return max(0, fields["write_bytes"] - fields["cancelled_write_bytes"])
    except (OSError, KeyError, ValueError):
        return None
