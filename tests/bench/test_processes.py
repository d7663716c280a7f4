import subprocess
import sys
from collections.abc import Iterator

import pytest

from bench.harness.processes import memory, processor, processor_seconds, tree, written

WORK = "deadline = time.process_time() + 0.2\nwhile time.process_time() < deadline: pass\n"
SAY = "print('done\\n', end='', flush=True)\n"  # one write: two processes share the pipe
MIB = 2**20


@pytest.fixture
def parent() -> Iterator[subprocess.Popen[str]]:
    """Give a process with a child; each works for 0.2 s, says so and waits for a line."""
    child = f"import time\n{WORK}{SAY}input()"
    program = f"""
import subprocess, sys, time
held = bytearray({8 * MIB})
child = subprocess.Popen([sys.executable, "-c", {child!r}], stdin=subprocess.PIPE)
{WORK}
{SAY}
input()
child.communicate(b"\\n")
print("waited", flush=True)
input()
"""
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(2)] == ["done\n"] * 2
        yield process
        process.kill()


def test_the_tree_is_the_process_and_its_child(parent: subprocess.Popen[str]) -> None:
    assert len(tree(parent.pid)) == 2


def test_a_child_counts_while_it_lives_and_when_it_was_waited_for(
    parent: subprocess.Popen[str],
) -> None:
    both = processor(parent.pid)
    assert 0.38 <= both.total < 2
    assert 0.4 <= processor_seconds(parent.pid) < 2
    assert parent.stdin is not None
    assert parent.stdout is not None
    parent.stdin.write("\n")
    parent.stdin.flush()
    assert parent.stdout.readline() == "waited\n"
    assert len(tree(parent.pid)) == 1
    assert processor(parent.pid).since(both).total >= 0


def test_what_is_written_is_counted_once_it_has_to_be_on_the_disk() -> None:
    program = f"""
import os, tempfile
with tempfile.TemporaryFile(dir=".") as file:
    file.write(bytes({MIB}))
    file.flush()
    os.fsync(file.fileno())
print(flush=True)
input()
"""
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert MIB <= written(process.pid) < 2 * MIB
        process.kill()


def test_memory_is_that_of_both(parent: subprocess.Popen[str]) -> None:
    both = memory(parent.pid)
    assert both > 8 * MIB


def test_a_process_that_is_gone_has_used_nothing() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    assert processor(process.pid).total == 0
    assert processor_seconds(process.pid) == 0
    assert written(process.pid) == 0
    assert memory(process.pid) == 0
