"""A board on a pseudo-terminal for a test: real MicroPython, flash in a file, power cuts."""

import subprocess
import sys
from pathlib import Path

STAND_IN = Path(__file__).parents[1] / "board" / "stand_in.py"


class StandInBoard:
    """The board of `board/stand_in.py`; `port` is a link to its terminal."""

    def __init__(self, folder: Path, micropython: str) -> None:
        self.port = str(folder / "ttyBOARD")
        self.image = folder / "flash.img"
        self._process = subprocess.Popen(
            [sys.executable, str(STAND_IN), self.port, str(self.image), micropython],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._answer() == "ready"

    def tell(self, command: str) -> None:
        """Cut the power, or pull the plug: the commands that stand_in.py names."""
        assert self._process.stdin is not None
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()
        assert self._answer() == "done"

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(timeout=30)
        self._process.stdout.close()

    def _answer(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()
