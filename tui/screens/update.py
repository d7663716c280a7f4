"""A node's first flash, or update, at a port of this machine: `tidegate firmware`, run beside."""

import os
import pty
import re
import shutil
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any

from tui.line import MUTED, Line, box, line
from tui.text import printable, wrapped
from tui.view import Action, View

MOST_LINES = 200
"""lines of the command's output that are kept; the oldest goes"""
LONGEST = 65_536
"""bytes of a line that does not end"""
CONTROLS = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


def is_here(place: str) -> bool:
    """Return whether a bridge's place is a port of this machine."""
    return place.startswith("/dev/") and Path(place).exists()


def plugged_in(devices: Path = Path("/dev")) -> list[str]:
    """Return the serial ports at USB of this machine, by their stable path if there is one."""
    links = sorted(devices.glob("serial/by-id/*"))
    known = {each.resolve() for each in links}
    others = [*sorted(devices.glob("ttyACM*")), *sorted(devices.glob("ttyUSB*"))]
    return [str(each) for each in (*links, *(each for each in others if each not in known))]


def firmware(*words: str) -> list[str]:
    """Return a command of `tidegate firmware`."""
    beside = [Path(each).with_name("tidegate") for each in (sys.argv[0], sys.executable)]
    program = next((str(each) for each in beside if each.exists()), None)
    return [program or shutil.which("tidegate") or "tidegate", "firmware", *words]


def update_command(port: str) -> list[str]:
    """Return the command that puts this version's node onto the board at a port."""
    return firmware("update", port)


class Command:
    """Commands on a pseudo-terminal, since they draw their bar only on one; read by a thread.

    The next begins when the one before has succeeded.
    """

    def __init__(self, *words: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        self.lines: deque[str] = deque(maxlen=MOST_LINES)
        self.progress = ""
        """the line that is written again and again: the bar"""
        self.status: int | None = None
        """the exit status; None while it runs"""
        self._commands = [list(each) for each in words]
        self._ended = False
        self._environment = (
            os.environ | {"TERM": "xterm", "COLUMNS": "72"} | dict(environment or {})
        )
        self._process: subprocess.Popen[bytes] | None = None
        Thread(target=self._run, name="update", daemon=True).start()

    def end(self) -> None:
        """End it before it is done."""
        self._ended = True
        if self._process is not None:
            self._process.terminate()

    def _run(self) -> None:
        status = 0
        for words in self._commands:
            status = self._run_one(words)
            if status or self._ended:
                break
        self.progress, self.status = "", status

    def _run_one(self, words: list[str]) -> int:
        ours, theirs = pty.openpty()
        try:
            self._process = subprocess.Popen(  # noqa: S603 - our own command
                words,
                stdin=subprocess.DEVNULL,
                stdout=theirs,
                stderr=theirs,
                env=self._environment,
                start_new_session=True,
            )
        except OSError as problem:
            os.close(ours)
            self.lines.append(f"{words[0]}: {problem.strerror}")
            return 127
        finally:
            os.close(theirs)
        with suppress(OSError):  # the command has closed the terminal
            self._read(ours)
        os.close(ours)
        self.progress = ""
        return self._process.wait()

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

    def __init__(self, session: Any, port: str, command: Command, then: str = "") -> None:
        super().__init__(session)
        self._port = port
        self._then = then
        """what to do when it has succeeded"""
        self.command = command

    def name(self) -> str:
        """Return the port."""
        return self._port

    def actions(self) -> Sequence[Action]:
        """Return how to stop it."""
        if self.command.status is not None:
            return []
        return [Action("K", "stop", self._stop, prompts=True)]

    def _stop(self) -> None:
        self.session.ask(
            f"Stop writing to the board at {printable(self._port, 80)}?",
            "The board stays at its version.",
            self.command.end,
        )

    def draw(self, cells: int, height: int) -> list[Line]:
        """Return the last lines, the bar, and how it ended."""
        command = self.command
        lines = [
            line(each)
            for words in list(command.lines)[-max(1, height - 5) :]
            for each in wrapped(words, cells - 4)
        ]
        if command.status is None:
            lines.append(line((command.progress or "it runs; leave this screen open", "accent")))
        elif command.status:
            lines.append(line((f"✕ it failed with status {command.status}", "bad")))
        else:
            lines.append(line(("● the node has this version", "good")))
            lines += [line(each) for each in wrapped(self._then, cells - 4)]
        words = "the board proves itself, or its old version comes back"
        lines = lines[-max(1, height - 4) :]
        title = f"the board at {printable(self._port, 80)}"
        return box(title, [*lines, [], line((words, MUTED))], cells, height)


class FirstFlash:
    """Has a person name port, settings and image of a board, one after another, and flashes it.

    `begin` is called with the port, the commands, and what to do afterwards.
    """

    def __init__(self, session: Any, begin: Callable[[str, list[list[str]], str], object]) -> None:
        self._session = session
        self._begin = begin
        self._port = ""
        self._settings = Path()
        self._new: list[str] = []

    def ask_port(self, used: Mapping[str, str]) -> None:
        """Ask for the port; `used` says which bridges read from which ports."""
        found = plugged_in()
        about = [f"{each}  {used.get(each, 'no bridge reads from it')}" for each in found]
        free = [each for each in found if each not in used]
        text = free[0] if len(free) == 1 else ""
        editor = self._session.prompt("port of the board: ", self._on_port, text, about)
        if not found:
            editor.note = "no USB port was found: plug the board in, or type a path"

    def _on_port(self, text: str) -> None:
        words = text.strip()
        found = [each for each in plugged_in() if words and words in each]
        self._port = found[0] if len(found) == 1 else words
        if not self._exists(self._port):
            return
        usual = str(Path.home() / "node.toml")
        editor = self._session.prompt("its settings file: ", self._on_settings, usual)
        editor.note = "a new one is written if there is none"

    def _on_settings(self, text: str) -> None:
        self._settings = Path(text.strip()).expanduser()
        if self._settings.is_file():
            self._ask_image()
        else:
            editor = self._session.prompt("board: ", self._on_board)
            editor.note = "such as pico, pico_w or esp32"

    def _on_board(self, text: str) -> None:
        self._new = ["--board", text.strip()]
        editor = self._session.prompt("sensors: ", self._on_sensors)
        editor.note = "such as bme280 or simulated; several with spaces between"

    def _on_sensors(self, text: str) -> None:
        for each in text.split():
            self._new += ["--sensor", each]
        self._session.prompt("name of the node: ", self._on_name, "node1")

    def _on_name(self, text: str) -> None:
        self._new += ["--name", text.strip()]
        self._ask_image()

    def _ask_image(self) -> None:
        editor = self._session.prompt("MicroPython image to install first: ", self._on_image)
        editor.note = "a .uf2 or .bin file; empty if the board has MicroPython"

    def _on_image(self, text: str) -> None:
        image = text.strip() and str(Path(text.strip()).expanduser())
        if image and not self._exists(image):
            return
        settings, more = str(self._settings), ["--micropython", image] if image else []
        commands = [firmware("new", *self._new, settings)] if self._new else []
        options, _ = self._session.client.options()
        commands.append(firmware("flash", settings, "--port", self._port, *more, *options))
        then = f'The gateway reads from it with [[serial]] port = "{self._port}" and a reload.'
        first = "MicroPython and the node are" if image else "The node is"
        self._session.ask(
            f"Flash the board at {printable(self._port, 80)}?",
            f"{first} written to it, with the settings of {printable(settings, 120)}.",
            lambda: self._begin(self._port, commands, then),
        )

    def _exists(self, path: str) -> bool:
        if path and Path(path).exists():
            return True
        self._session.tell(f"there is no {printable(path, 120) or 'path'}", good=False)
        return False
