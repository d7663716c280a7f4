import os
from pathlib import Path

import pytest

from gateway.telemetry.process_metrics import bytes_written

IO = "rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 5\nwrite_bytes: {}\n"


def test_what_was_taken_back_does_not_count(tmp_path: Path) -> None:
    file = tmp_path / "io"
    file.write_text(IO.format(10_000) + "cancelled_write_bytes: 4096\n")
    assert bytes_written(file) == 5904
    file.write_text(IO.format(0) + "cancelled_write_bytes: 4096\n")
    assert bytes_written(file) == 0


@pytest.mark.parametrize("text", ["", "write_bytes: 5\n", "write_bytes: x\n"])
def test_a_kernel_that_does_not_account_says_nothing(tmp_path: Path, text: str) -> None:
    file = tmp_path / "io"
    file.write_text(text)
    assert bytes_written(file) is None
    assert bytes_written(tmp_path / "none") is None


def test_what_this_process_writes_is_counted(tmp_path: Path) -> None:
    before = bytes_written()
    if before is None:
        pytest.skip("this machine does not allow to count the input and output of a process")
    descriptor = os.open(tmp_path / "file", os.O_CREAT | os.O_WRONLY)
    os.write(descriptor, bytes(1_000_000))
    os.fsync(descriptor)
    os.close(descriptor)
    after = bytes_written()
    assert after is not None
    assert after - before >= 0  # 0 on a file system in memory
