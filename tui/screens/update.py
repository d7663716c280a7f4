"""A node's update at a port of this machine: `tidegate firmware update`, run beside the screen."""

import os
import pty
import re
import shutil
import subprocess
import sys
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any

from tui.line import MUTED, Line, box, line
from tui.text import printable
from tui.view import Action, View

MOST_LINES = 200
"""lines of the command's output that are kept; the oldest goes"""
LONGEST = 65_536
"""bytes of a line that does not end"""
CONTROLS = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


def is_here(place: str) -> bool:
    """Return whether a bridge's place is a port of this machine."""
    return place.startswith("/dev/") and Path(place).exists()


def update_command(port: str) -> list[str]:
    """Return the command that puts this version's node onto the board at a port."""
    beside = Path(sys.argv[0]).with_name("tidegate")
    program = str(beside) if beside.exists() else shutil.which("tidegate") or "tidegate"
    return [program, "firmware", "update", port]


class Command:
    """A command on a pseudo-terminal, since it draws its bar only on one; read by a thread."""

    def __init__(self, words: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        self.lines: deque[str] = deque(maxlen=MOST_LINES)
        self.progress = ""
        """the line that is written again and again: the bar"""
        self.status: int | None = None
        """the exit status; None while it runs"""
        self._words = list(words)
        self._environment = (
            os.environ | {"TERM": "xterm", "COLUMNS": "72"} | dict(environment or {})
        )
        self._process: subprocess.Popen[bytes] | None = None
        Thread(target=self._run, name="update", daemon=True).start()

    def end(self) -> None:
        """End it before it is done."""
        if self._process is not None:
            self._process.terminate()

    def _run(self) -> None:
        ours, theirs = pty.openpty()
        try:
            self._process = subprocess.Popen(  # noqa: S603 - our own command
                self._words,
                stdin=subprocess.DEVNULL,
                stdout=theirs,
                stderr=theirs,
                env=self._environment,
                start_new_session=True,
            )
        except OSError as problem:
            self.lines.append(f"{self._words[0]}: {problem.strerror}")
            self.status = 127
            return
        finally:
            os.close(theirs)
        with suppress(OSError):  # the command has closed the terminal
            self._read(ours)
        os.close(ours)
        self.progress, self.status = "", self._process.wait()

    def _read(self, terminal: int) -> None:
        rest = ""
        while part := os.read(terminal, 4_096):
            rest += CONTROLS.sub("", part.decode(errors="replace"))
            *ended, rest = rest.split("\n")
            self.lines += [each for line in ended if (each := _last(line))]
            rest = rest[-LONGEST:]
            self.progress = _last(rest)


def _last(words: str) -> str:
    """Return what a line shows in the end: what is behind its last return to the beginning."""
    parts = [each for each in words.split("\r") if each.strip()]
    return printable(parts[-1], 400) if parts else ""


class NodeUpdate(View):
    """What the command says, with its bar; it goes on when the person leaves."""

    title = "update"

    def __init__(self, session: Any, port: str, command: Command) -> None:
        super().__init__(session)
        self._port = port
        self.command = command

    def name(self) -> str:
        """Return the port."""
        return self._port

    def actions(self) -> Sequence[Action]:
        """Return how to stop it."""
        if self.command.status is not None:
            return []
        return [Action("K", "stop it", self._stop, asks=True)]

    def _stop(self) -> None:
        self.session.ask(
            f"Stop the update at {self._port}?",
            "The board keeps the version that it has.",
            self.command.end,
        )

    def draw(self, cells: int, height: int) -> list[Line]:
        """Return the last lines, the bar, and how it ended."""
        command = self.command
        lines = [line(each) for each in list(command.lines)[-max(1, height - 5) :]]
        if command.status is None:
            lines.append(line((command.progress or "it runs; leave this screen open", "accent")))
        elif command.status:
            lines.append(line((f"✕ it failed with status {command.status}", "bad")))
        else:
            lines.append(line(("● the node has this version", "good")))
        words = "the board proves itself, or its old version comes back"
        return box(f"update at {self._port}", [*lines, [], line((words, MUTED))], cells, height)
