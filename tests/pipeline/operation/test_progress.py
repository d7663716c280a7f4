import os
import pty
import subprocess
import sys

PROGRAM = """
from pipeline.operation.progress import bars
with bars() as watch:
    watch("landing files", 0, 200)
    watch("landing files", 50, 200)
    watch("ledger", 1, 1)
"""


def shown(stderr: int) -> None:
    subprocess.run(
        [sys.executable, "-c", PROGRAM],
        stderr=stderr,
        env={**os.environ, "TERM": "xterm"},
        timeout=60,
        check=True,
    )


def test_bars_are_for_a_terminal_alone() -> None:
    reader, terminal = pty.openpty()
    shown(terminal)
    said = os.read(reader, 100_000).decode()
    assert "landing files" in said
    assert " 25 %" in said
    assert "100 %" in said
    os.close(reader)
    os.close(terminal)
    reader, writer = os.pipe()
    shown(writer)
    os.close(writer)
    assert os.read(reader, 1000) == b""
    os.close(reader)
