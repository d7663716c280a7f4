import os
from pathlib import Path

import pytest

from gateway.config.named_file import open_named


def test_a_regular_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"text")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    with open_named(tmp_path / "link") as file:
        assert file.read() == b"text"


def test_nobody_waits_for_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/null")):
        with pytest.raises(OSError, match="no regular file"):
            open_named(path)
    with pytest.raises(OSError, match="Is a directory"):
        open_named(tmp_path)
    with pytest.raises(OSError, match="No such file"):
        open_named(tmp_path / "none")
