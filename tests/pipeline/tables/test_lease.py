"""The lease of the tables: one run at a time, and no commit of a run that lost it."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from deltalake import DeltaTable

from pipeline.errors import BusyError
from pipeline.place import place_of
from pipeline.tables import delta, lease
from pipeline.tables.columns import Columns
from pipeline.tables.lease import Holder, held
from pipeline.tables.task_files import write_file
from tests.support.table import table
from tests.support.waiting import until

COLUMNS: Columns = (("seq", "bigint"),)
HOLDS = """
import sys, time
from pathlib import Path
from pipeline.tables.lease import held
with held(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def another(root: Path) -> Iterator["subprocess.Popen[str]"]:
    """Run a process that has the lease until it is killed, or this ends."""
    command = [sys.executable, "-c", HOLDS, str(root)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def holder(root: Path) -> Holder:
    found = lease._holder(delta.opened(root / lease.LOG))
    assert found is not None
    return found


def made(root: Path) -> Path:
    delta.create(root / "silver", COLUMNS)
    return root / "silver"


def test_a_second_run_is_told_who_is_first(tmp_path: Path) -> None:
    first = another(tmp_path)
    told = "another tidegate-pipeline works on these tables: process {} of "
    with first as process, pytest.raises(BusyError, match=told.format(process.pid)), held(tmp_path):
        pass
    with held(tmp_path), pytest.raises(BusyError, match=f"process {os.getpid()}"), held(tmp_path):
        pass
    with held(tmp_path):  # that of a killed process, and one that ended
        pass
    assert holder(tmp_path).ended


def test_who_waits_comes_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "WAIT", 0.01)
    came: list[str] = []

    def wait() -> None:
        with held(tmp_path, wait=True):
            came.append("second")

    with held(tmp_path):
        second = threading.Thread(target=wait)
        second.start()
        time.sleep(0.1)
        came.append("first")
    second.join()
    assert came == ["first", "second"]


def test_a_killed_process_is_replaced_at_once_and_its_late_commit_fails(tmp_path: Path) -> None:
    silver = made(tmp_path)
    with another(tmp_path) as first:
        first.kill()
        first.wait()
        lost = holder(tmp_path).number
        stale = DeltaTable(silver)
        with held(tmp_path):
            delta.append(silver, COLUMNS, [{"seq": 1}])
            assert holder(tmp_path).number > lost
    assert DeltaTable(silver).transaction_version(delta.HOLDER) == holder(tmp_path).number
    token = delta.LEASE.set(lost)
    try:
        with pytest.raises(BusyError, match="took these tables over"):
            delta.append(silver, COLUMNS, [{"seq": 2}])
        found = write_file(place_of(tmp_path), "silver", delta.read(silver))
        with pytest.raises(BusyError, match="took these tables over"):  # it was opened before
            delta.change(stale, [delta._addition(found)], [])
    finally:
        delta.LEASE.reset(token)
    assert delta.read(silver)["seq"].to_pylist() == [1]


def by_another(root: Path, **changes: object) -> Holder:
    """Let the lease be that of a run like this one, but for some changes."""
    fields = lease._own(int(time.time() * 1000) + 1)._asdict() | changes
    lease._note(place_of(root), lease._log(place_of(root)), Holder(**fields))
    return holder(root)


ELSEWHERE: dict[str, object] = {"host": "elsewhere"}
HOLDERS: list[tuple[str, dict[str, object], float, bool]] = [
    ("another machine gave a sign", ELSEWHERE, 1, False),
    ("it gave one long ago", ELSEWHERE, lease.TERM + 1, True),
    ("it ended", ELSEWHERE | {"ended": True}, 1, True),
    ("this machine was restarted since", {"boot": "earlier"}, time.time(), True),
    ("a machine of the same image", {"boot": "another"}, 1, False),
    ("this process, but no thread of it", {}, 1, True),
    ("a process that is gone", {"pid": 2**22 + 1}, 1, True),
    ("a process with the number of another", {"pid": 1}, 1, True),
    ("a system that tells no start", {"start": ""}, 1, False),
    ("it tells none, and it is long ago", {"start": ""}, lease.TERM + 1, True),
]


@table("changes,seconds,free", [row[1:] for row in HOLDERS], ids=[row[0] for row in HOLDERS])
def test_whose_lease_is_free(
    tmp_path_factory: pytest.TempPathFactory,
    changes: dict[str, object],
    seconds: float,
    free: bool,
) -> None:
    root = tmp_path_factory.mktemp("tables")
    before = by_another(root, **changes, sign=time.time() - seconds)
    if free:
        with held(root):
            assert holder(root).number > before.number
    else:
        told = f"process {before.pid} of {before.host}, since "
        with pytest.raises(BusyError, match=told), held(root):
            pass


def test_a_run_gives_signs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "TERM", 0.04)
    with held(tmp_path):
        first = holder(tmp_path)
        until(lambda: holder(tmp_path).sign > first.sign, "a sign")
        assert holder(tmp_path).number == first.number


def test_who_lost_the_lease_ends_nobody_s(tmp_path: Path) -> None:
    with held(tmp_path):
        by_another(tmp_path, **ELSEWHERE)
    assert (holder(tmp_path).host, holder(tmp_path).ended) == ("elsewhere", False)


def test_of_two_that_begin_at_once_one_is_busy(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLDS, str(tmp_path)]
    pipe = subprocess.PIPE
    both = [
        subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) for _ in range(2)
    ]
    until(lambda: any(each.poll() is not None for each in both), "one that gives up")
    said = [each.communicate()[1] for each in both]
    assert sorted(each.returncode for each in both) == [0, 1]
    assert sum("BusyError" in text for text in said) == 1


def test_a_lost_log_fences_nobody_out(tmp_path: Path) -> None:
    silver = made(tmp_path)
    with held(tmp_path):
        delta.append(silver, COLUMNS, [{"seq": 1}])
    (tmp_path / lease.LOG).rename(tmp_path / "away")
    with held(tmp_path):
        delta.append(silver, COLUMNS, [{"seq": 2}])
    assert delta.read(silver).num_rows == 2
