"""One run at a time changes the tables: a lease in a log of its own, with fences behind it.

Every commit notes the number of its run's lease as an application transaction. Of two commits to a
table at once that note one, Delta refuses the later. A run that takes the place of another, which
seems dead, first notes its higher number in every table: whatever the other still commits fails.
"""

import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from deltalake import DeltaTable, Schema
from deltalake.exceptions import CommitFailedError, DeltaError

from pipeline.errors import BusyError
from pipeline.place import Place, place_of
from pipeline.tables import delta
from pipeline.tables.columns import Columns, arrow_schema
from pipeline.tables.delta import Where

LOG = "_lease"
"""A Delta table without rows, beside the tables; readers of tables ignore such a name."""
PROPERTY = "tidegate.lease"
TERM = 600
"""Seconds after its last sign for which a run on another machine is taken to be alive."""
SIGNS = 4
"""How often in a term a run gives one."""
WAIT = 0.5
"""Seconds between two looks of who waits."""
TRIES = 5
"""How often a commit is tried that others come before."""
_COLUMNS: Columns = (("nothing", "string"),)
_CONFIGURATION = {
    "delta.checkpointInterval": "20",
    "delta.logRetentionDuration": "interval 1 hours",
}

_here: set[str] = set()
"""Tables that threads of this process hold."""
_guard = threading.Lock()


class Holder(NamedTuple):
    """Who has or had the lease."""

    number: int
    host: str
    machine: str
    """What tells this machine, or container, from others with its name."""
    boot: str
    pid: int
    start: str
    """When the process started, in the kernel's ticks since its boot."""
    since: float
    sign: float
    """When it was last known to be alive."""
    ended: bool = False


@contextmanager
def held(tables: Where, *, wait: bool = False) -> Iterator[None]:
    """Hold the lease of the tables; commits of this thread bear its number meanwhile.

    Raises BusyError, which names the holder, if another run has it, unless it shall wait for that.
    A process of this machine that died is replaced at once, one of another after TERM.
    """
    lease = _take(place_of(tables), wait=wait)
    token = delta.LEASE.set(lease.own.number)
    ended = threading.Event()
    signs = threading.Thread(target=lease.give_signs, args=(ended,), daemon=True)
    signs.start()
    try:
        yield
    finally:
        ended.set()
        signs.join()
        delta.LEASE.reset(token)
        lease.tell(ended=True)
        with _guard:
            _here.discard(lease.root.name)


@dataclass
class _Lease:
    """A lease of this process, and the log as it was when that was last noted there."""

    root: Place
    log: DeltaTable
    own: Holder

    def give_signs(self, ended: threading.Event) -> None:
        """Tell others again and again that this run is alive, until it has ended."""
        while not ended.wait(TERM / SIGNS):
            self.tell()

    def tell(self, *, ended: bool = False) -> None:
        """Note that this run is alive, or has ended, unless another has taken over.

        It may fail, as on a full disk; the next time may come, or others find that it has ended.
        """
        holder = self.own._replace(sign=time.time(), ended=ended)
        with suppress(DeltaError, OSError):
            try:
                _note(self.root, self.log, holder)
            except CommitFailedError:  # it may be this run's own, of which no answer came
                self.log = _log(self.root)
                known = _holder(self.log)
                if known is not None and known.number == holder.number:
                    _note(self.root, self.log, holder)


def _take(root: Place, *, wait: bool) -> _Lease:
    while True:
        try:
            return _taken(root)
        except BusyError:
            if not wait:
                raise
        time.sleep(WAIT)


def _taken(root: Place) -> _Lease:
    """Take the lease for a thread of this process; raises BusyError."""
    with _guard:
        if root.name in _here:
            raise BusyError(_busy(_own(0)))
        _here.add(root.name)
    try:
        return _won(root)
    except BaseException:
        with _guard:
            _here.discard(root.name)
        raise


def _won(root: Place) -> _Lease:
    """Note in the log that this process has the lease, if it is free; raises BusyError."""
    for _ in range(TRIES):
        log = _log(root)
        before, version = _holder(log), log.version()
        if before is not None and not _is_free(before):
            raise BusyError(_busy(before))
        own = _own(0 if before is None else before.number)
        try:
            _note(root, log, own)
        except CommitFailedError:
            if _log(root).version() == version:
                raise
            continue
        if before is not None and not before.ended:
            _fence(root, own.number)
        return _Lease(root, log, own)
    raise BusyError(f"others began to work on {root} at the same moment")


def _own(after: int) -> Holder:
    """Return this process, with a higher number than before, also if the log was lost."""
    now = time.time()
    start = _start(os.getpid())
    machine = f"{_read('/etc/machine-id')} {_link('/proc/self/ns/pid')}"
    boot = _read("/proc/sys/kernel/random/boot_id")
    number = max(after + 1, int(now * 1000))
    return Holder(number, socket.gethostname(), machine, boot, os.getpid(), start, now, now)


def _is_free(holder: Holder) -> bool:
    if holder.ended:
        return True
    own = _own(0)
    here = (holder.host, holder.machine) == (own.host, own.machine)
    if here and holder.start and holder.boot == own.boot:  # if this is our pid, no thread has it
        return holder.start != _start(holder.pid) or holder.pid == own.pid
    restarted = here and holder.sign < _booted()  # a machine of the same image may live on
    return restarted or time.time() - holder.sign > TERM


def _busy(holder: Holder) -> str:
    since = datetime.fromtimestamp(holder.since, UTC)
    return (
        "another tidegate-pipeline works on these tables: "
        f"process {holder.pid} of {holder.host}, since {since:%Y-%m-%d %H:%M:%S} UTC"
    )


def _start(pid: int) -> str:
    """Return when a process started; an empty text if there is none that runs."""
    fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return fields[19] if fields and fields[0] not in "ZX" else ""


def _booted() -> float:
    """Return when this machine was started; 0 if it does not say so."""
    uptime = _read("/proc/uptime").split()
    return time.time() - float(uptime[0]) if uptime else 0.0


def _read(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""


def _link(path: str) -> str:
    try:
        return str(Path(path).readlink())
    except OSError:
        return ""


def _log(root: Place) -> DeltaTable:
    found = delta.lookup(root / LOG)
    if found is not None:
        return found
    with suppress(DeltaError):  # another makes it at the same moment
        schema = Schema.from_arrow(arrow_schema(_COLUMNS))
        return delta.make(root / LOG, schema, configuration=_CONFIGURATION)
    return delta.opened(root / LOG)


def _holder(log: DeltaTable) -> Holder | None:
    noted = log.metadata().configuration.get(PROPERTY)
    return None if noted is None else Holder(**json.loads(noted))


def _note(root: Place, log: DeltaTable, holder: Holder) -> None:
    delta.set_property(log, PROPERTY, json.dumps(holder._asdict()))
    delta.sync_log(root / LOG)


def _fence(root: Place, number: int) -> None:
    """Let commits of runs before this one fail, in every table."""
    for name in delta.tables_in(root):
        for attempt in range(TRIES):
            try:
                delta.fence(root / name, number)
                break
            except CommitFailedError:  # a commit of the other run came before
                if attempt == TRIES - 1:
                    raise
