"""A board on a pseudo-terminal: a real MicroPython, its flash in a file, its resets and its plug.

    python stand_in.py LINK IMAGE MICROPYTHON [BLOCKS]

LINK becomes a link to the terminal. Each line on standard input is a command: `cut` takes the
power away and gives it back, `writes N` lets it fail after N more writes to the flash, `unplug`
and `plug` do as they say, and after `usb` a reset pulls the plug for a moment. Each is answered
with a line. The board ends with standard input.
"""

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
import tty
from pathlib import Path

PROGRAM = Path(__file__).with_name("inside") / "program.py"
SOFT_RESET_RAW = 43
HARD_RESET = 44
POWER_CUT = 45
NO_END = (1 << 64) - 1
USB_SECONDS = 0.3
"""For which a board with a USB port of its own is gone at a reset; real ones need longer."""

INTERRUPT = b"\x03"


class Board:
    """Owns the terminal and the process behind it."""

    def __init__(self, link: Path, image: str, micropython: str, blocks: str) -> None:
        self._link = link
        self._command = [micropython, str(PROGRAM), image, blocks]
        self._budget = Path(image + ".writes")
        self._set_budget(NO_END)
        self._usb = False
        self.plug()
        self._start()

    def plug(self) -> str:
        self._master, self._slave = os.openpty()
        tty.setraw(self._slave)
        os.set_blocking(self._master, False)
        temporary = self._link.with_name(self._link.name + ".new")
        temporary.symlink_to(os.ttyname(self._slave))
        temporary.replace(self._link)
        return os.ttyname(self._slave)

    def unplug(self) -> None:
        self._link.unlink()  # first: another board may get the same terminal's name at once
        os.close(self._slave)
        os.close(self._master)
        self._master = -1

    def _set_budget(self, writes: int) -> None:
        self._budget.write_bytes(writes.to_bytes(8, "little"))

    def _start(self, *options: str) -> None:
        self._interruptible = self._started = False
        self._process = subprocess.Popen(
            [*self._command, *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
        )

    def _ended(self) -> int:
        code = self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            assert pipe is not None
            pipe.close()
        if code == POWER_CUT:
            self._set_budget(NO_END)
        self._start(*(("raw",) if code == SOFT_RESET_RAW else ()))
        return code

    def serve(self) -> None:
        """Pass bytes on and carry out commands until standard input ends."""
        while True:
            out, err = self._process.stdout, self._process.stderr
            assert out is not None
            assert err is not None
            sources = [0, out.fileno(), err.fileno()]
            if self._master >= 0 and self._started:  # a board that starts hears nothing
                sources.append(self._master)
            ready, _, _ = select.select(sources, [], [])
            if err.fileno() in ready:
                self._hear_program(os.read(err.fileno(), 4096))
            if 0 in ready:
                line = sys.stdin.readline()
                if not line:
                    self._process.kill()
                    return
                print(self._command_line(line.split()), flush=True)
            elif out.fileno() in ready:
                self._pass_out(out.fileno())
            elif self._master in ready:
                self._pass_in()

    def _hear_program(self, expected: bytes) -> None:
        for byte in expected:
            if byte in b"\x03\x06":
                self._started = True
                self._interruptible = byte == INTERRUPT[0]

    def _command_line(self, words: list[str]) -> str:
        match words:
            case ["cut"]:
                self._set_budget(NO_END)
                self._process.kill()
                with contextlib.suppress(BlockingIOError):  # what it had not read is lost
                    os.read(self._master, 65_536)
                self._ended()
            case ["writes", count]:
                self._set_budget(int(count))
            case ["unplug"]:
                self.unplug()
            case ["plug"]:
                self.plug()
            case ["usb"]:
                self._usb = True
            case _:
                return f"what is {words}?"
        return "done"

    def _pass_out(self, descriptor: int) -> None:
        data = os.read(descriptor, 4096)
        if not data:
            if self._ended() == HARD_RESET and self._usb:
                self.unplug()
                time.sleep(USB_SECONDS)
                self.plug()
        elif self._master >= 0:
            with contextlib.suppress(BlockingIOError):  # nobody reads: as on a wire
                os.write(self._master, data)

    def _pass_in(self) -> None:
        data = os.read(self._master, 4096)
        if INTERRUPT in data and self._interruptible:
            self._process.send_signal(signal.SIGINT)
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it is just starting again
            self._process.stdin.write(data)


def main() -> None:
    link, image, micropython, *blocks = sys.argv[1:]
    board = Board(Path(link), image, micropython, *(blocks or ["256"]))
    print("ready", flush=True)
    board.serve()


if __name__ == "__main__":
    main()
