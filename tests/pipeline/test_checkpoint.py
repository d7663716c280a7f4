import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.checkpoint import (
    Commit,
    Range,
    forget_commit,
    locked,
    read_commits,
    write_commit,
)
from pipeline.errors import PipelineError

COMMIT = Commit(
    batch=3,
    files={"barn/ä.jsonl": 120},
    rows={"bronze": 2, "quarantine": 0, "silver": 1},
    ranges=(Range("barn", "00a1b2c3d4", "main", 1, 2**63 - 1),),
)
HOLD = """
import sys
from pathlib import Path
from pipeline.checkpoint import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_commit_comes_back(tmp_path: Path) -> None:
    assert read_commits(tmp_path) == {}
    write_commit(tmp_path, COMMIT)
    assert read_commits(tmp_path) == {3: COMMIT}
    forget_commit(tmp_path, 3)
    forget_commit(tmp_path, 3)
    assert read_commits(tmp_path) == {}


def test_a_commit_replaces_the_one_of_its_number(tmp_path: Path) -> None:
    write_commit(tmp_path, COMMIT)
    again = Commit(3, {}, {"bronze": 0}, ())
    write_commit(tmp_path, again)
    assert read_commits(tmp_path) == {3: again}


def test_what_was_cut_off_before_the_rename_is_no_commit(tmp_path: Path) -> None:
    write_commit(tmp_path, COMMIT)
    (tmp_path / "0000000004.tmp").write_text("{")
    assert read_commits(tmp_path) == {3: COMMIT}


DAMAGED = [b"", b"{", b"[]", b"{}", b'{"version":1}', b'{"version":1,"batch":3}', b"\x00" * 40]


@pytest.mark.parametrize("content", DAMAGED)
def test_a_damaged_file_is_no_commit(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "0000000003.json").write_bytes(content)
    assert read_commits(tmp_path) == {}


def test_a_file_under_another_number_is_no_commit(tmp_path: Path) -> None:
    write_commit(tmp_path, COMMIT)
    (tmp_path / "0000000003.json").rename(tmp_path / "0000000004.json")
    assert read_commits(tmp_path) == {}


def test_a_later_version_stops_the_run(tmp_path: Path) -> None:
    (tmp_path / "0000000001.json").write_text(json.dumps({"version": 2, "news": True}))
    with pytest.raises(PipelineError, match=r"0000000001\.json has version 2: .* knows 1"):
        read_commits(tmp_path)


def test_the_lock_is_one_process_s_and_goes_with_it(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoints"
    arguments = [sys.executable, "-c", HOLD, str(folder)]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(PipelineError, match="lock is held: another"), locked(folder):
            pass
        os.kill(holder.pid, 9)
    with locked(folder):
        pass
