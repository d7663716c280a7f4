"""Which process listens on a TCP port, as Linux tells it (proc(5))."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

PROC = Path("/proc")

LISTENING = "0A"
"""The state of a listening socket in /proc/net/tcp."""


def holder_of(port: int, proc: Path = PROC) -> str:
    """Return who listens on a port, as `name (process 123)`; "" if this user cannot know it."""
    wanted = {f"socket:[{inode}]" for inode in _inodes(port, proc)}
    for folder in proc.glob("[0-9]*") if wanted else ():
        with suppress(OSError):  # a process that ended, or another user's
            if any(str(file.readlink()) in wanted for file in (folder / "fd").iterdir()):
                name = (folder / "comm").read_text(encoding="utf-8", errors="replace").strip()
                return f"{name} (process {folder.name})"
    return ""


def _inodes(port: int, proc: Path) -> Iterator[str]:
    """Give the inodes of the sockets that listen on a port, whatever their address."""
    for table in ("tcp", "tcp6"):
        with suppress(OSError):
            for line in (proc / "net" / table).read_text(encoding="ascii").splitlines()[1:]:
                fields = line.split()
                if fields[3] == LISTENING and int(fields[1].rpartition(":")[2], 16) == port:
                    yield fields[9]
