"""The REPL over standard input and output; its modes and answers are those of the ports."""

import sys

from ending import SOFT_RESET, SOFT_RESET_RAW, end

WINDOW = 128
RAW_BANNER = b"raw REPL; CTRL-B to exit\r\n>"

STDIN, STDOUT = sys.stdin.buffer, sys.stdout.buffer


def listen_for_ctrl_c(yes: bool) -> None:
    """Say whether Ctrl-C interrupts what runs; a REPL that reads takes it as a byte."""
    sys.stderr.buffer.write(b"\x03" if yes else b"\x06")


def take() -> bytes:
    while True:
        try:
            byte = STDIN.read(1)
            if not byte:
                end(0)
            return byte
        except KeyboardInterrupt:
            pass


def take_paste() -> bytearray:
    """Take a program in the raw-paste mode's windows."""
    STDOUT.write(b"R\x01" + WINDOW.to_bytes(2, "little") + b"\x01")
    source, count = bytearray(), 0
    while True:
        byte = take()
        if byte == b"\x04":
            STDOUT.write(b"\x04")
            return source
        source += byte
        count += 1
        if count == WINDOW:
            STDOUT.write(b"\x01")
            count = 0


def run_raw(source: bytearray, names: "dict[str, object]") -> None:
    try:
        listen_for_ctrl_c(True)
        exec(compile(str(source, "utf-8"), "<stdin>", "exec"), names)
        STDOUT.write(b"\x04\x04>")
    except SystemExit:
        STDOUT.write(b"\x04\x04MPY: soft reboot\r\n")
        sys.exit(SOFT_RESET_RAW)
    except BaseException as failure:
        STDOUT.write(b"\x04")
        sys.print_exception(failure, sys.stdout)
        STDOUT.write(b"\x04>")
    listen_for_ctrl_c(False)


def friendly(byte: bytes) -> None:
    if byte == b"\x04":
        STDOUT.write(b"MPY: soft reboot\r\n")
        sys.exit(SOFT_RESET)
    if byte in b"\x02\r\x03":
        STDOUT.write(b"\r\n>>> ")


def repl(names: "dict[str, object]", *, raw: bool) -> None:
    """Serve the REPL until a reset; its modes and answers are those of the ports."""
    line = bytearray()
    listen_for_ctrl_c(False)
    while True:
        byte = take()
        if byte == b"\x01" and line == b"\x05A" and raw:
            line = bytearray()
            run_raw(take_paste(), names)
        elif byte == b"\x01":
            raw, line = True, bytearray()
            STDOUT.write(RAW_BANNER)
        elif not raw:
            friendly(byte)
        elif byte == b"\x02":
            raw = False
            STDOUT.write(b"\r\nMicroPython v1.25.0 on the stand-in board\r\n>>> ")
        elif byte == b"\x03":
            line = bytearray()
        elif byte != b"\x04":
            line += byte
        elif line:
            STDOUT.write(b"OK")
            run_raw(line, names)
            line = bytearray()
        else:
            STDOUT.write(b"OK\r\nMPY: soft reboot\r\n")
            sys.exit(SOFT_RESET_RAW)
