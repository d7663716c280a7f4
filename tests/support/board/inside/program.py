"""What a board's own program does, under MicroPython's unix port: a REPL over stdin and stdout.

    micropython program.py IMAGE BLOCKS [raw]

The file IMAGE is the flash: littlefs on BLOCKS erase blocks, mounted as "/". boot.py and main.py
run as on a board. It ends with 42 to be started again, with 43 into the raw REPL, and with 44 as
machine.reset() does. After N writes to the flash the power fails. On standard error it says
whether Ctrl-C interrupts: a byte 3, or a byte 6.
"""

import sys

from ending import SOFT_RESET, SOFT_RESET_RAW, end
from flash import mount
from hardware import Machine, Network
from repl import RAW_BANNER, STDOUT, listen_for_ctrl_c, repl


class MicroPython:
    """The module of this name, with a Ctrl-C that goes through the terminal's owner."""

    @staticmethod
    def kbd_intr(character: int) -> None:
        listen_for_ctrl_c(character == 3)

    @staticmethod
    def const(value: int) -> int:
        return value

    @staticmethod
    def alloc_emergency_exception_buf(_size: int) -> None:
        pass


def run_file(name: str, names: "dict[str, object]") -> None:
    try:
        with open(name) as file:
            source = file.read()
    except OSError:
        return
    run_source(source, name, names)


def run_source(source: str, name: str, names: "dict[str, object]") -> None:
    """Run it; what it trips over goes where a board prints it."""
    try:
        exec(compile(source, name, "exec"), names)
    except SystemExit:
        raise
    except BaseException as failure:
        sys.print_exception(failure, sys.stdout)


def main() -> None:
    sys.modules["machine"] = Machine
    sys.modules["micropython"] = MicroPython
    sys.modules["network"] = Network
    mount(sys.argv[1], int(sys.argv[2]))
    names: dict[str, object] = {"__name__": "__main__"}
    raw = "raw" in sys.argv[3:]
    files = ["boot.py"] if raw else ["boot.py", "main.py"]
    while True:
        try:
            MicroPython.kbd_intr(3)
            while files:
                run_file(files.pop(0), names)
            STDOUT.write(RAW_BANNER if raw else b"\r\n>>> ")
            repl(names, raw=raw)
        except KeyboardInterrupt:
            files = []
        except SystemExit as asked:
            code = asked.args[0] if asked.args else SOFT_RESET
            end(code if code in (SOFT_RESET, SOFT_RESET_RAW) else SOFT_RESET)


main()
