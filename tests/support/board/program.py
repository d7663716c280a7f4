"""What a board's own program does, under MicroPython's unix port: a REPL over stdin and stdout.

    micropython program.py IMAGE BLOCKS [raw]

The file IMAGE is the flash: littlefs on BLOCKS erase blocks, mounted as "/". boot.py and main.py
run as on a board. It ends with 42 to be started again, with 43 into the raw REPL, and with 44 as
machine.reset() does. After N writes to the flash the power fails. On standard error it says
whether Ctrl-C interrupts: a byte 3, or a byte 6.
"""

import os
import struct
import sys
import time

import ffi
import vfs

ERASE_BLOCK = 4096
SOFT_RESET = 42
SOFT_RESET_RAW = 43
HARD_RESET = 44
POWER_CUT = 45
WINDOW = 128
RAW_BANNER = b"raw REPL; CTRL-B to exit\r\n>"

STDIN, STDOUT, STDERR = sys.stdin.buffer, sys.stdout.buffer, sys.stderr.buffer
_exit = ffi.open(None).func("v", "_exit", "i")
options = sys.argv[3:]

TYPE_CHECKING = False  # MicroPython has no typing module
if TYPE_CHECKING:
    from collections.abc import Callable


class Flash:
    """A block device in a file; what was written before a power cut stays."""

    def __init__(self, path: str, blocks: int) -> None:
        self._blocks = blocks
        self._budget = open(path + ".writes", "r+b")
        try:
            self._file = open(path, "r+b")
        except OSError:
            self._file = open(path, "w+b")
            self._file.write(b"\xff" * (ERASE_BLOCK * blocks))
            self._file.flush()

    def readblocks(self, block: int, data: bytearray, offset: int = 0) -> None:
        self._file.seek(block * ERASE_BLOCK + offset)
        self._file.readinto(data)

    def writeblocks(self, block: int, data: bytes, offset: int = 0) -> None:
        self._spend()
        self._file.seek(block * ERASE_BLOCK + offset)
        self._file.write(data)

    def ioctl(self, request: int, argument: int) -> int:
        if request == 3:
            self._file.flush()
        if request == 4:
            return self._blocks
        if request == 5:
            return ERASE_BLOCK
        if request == 6:
            self._spend()
            self._file.seek(argument * ERASE_BLOCK)
            self._file.write(b"\xff" * ERASE_BLOCK)
        return 0

    def _spend(self) -> None:
        self._budget.seek(0)
        left = int.from_bytes(self._budget.read(8), "little")
        if left == 0:
            self._file.flush()
            _exit(POWER_CUT)
        if left < 1 << 32:
            self._budget.seek(0)
            self._budget.write((left - 1).to_bytes(8, "little"))
            self._budget.flush()


def reset() -> None:
    STDOUT.flush()
    _exit(HARD_RESET)


class Timer:
    """One shot, in a thread."""

    ONE_SHOT = 0
    PERIODIC = 1

    def __init__(self, _number: int = -1) -> None:
        self._round = 0

    def init(self, *, mode: int, period: int, callback: "Callable[[Timer], None]") -> None:
        import _thread

        self._round += 1
        _thread.start_new_thread(self._run, (self._round, mode, period, callback))

    def deinit(self) -> None:
        self._round += 1

    def _run(
        self, number: int, mode: int, period: int, callback: "Callable[[Timer], None]"
    ) -> None:
        while number == self._round:
            time.sleep_ms(period)
            if number == self._round:
                callback(self)
            if mode == Timer.ONE_SHOT:
                return


class WDT:
    """Resets the board where nothing feeds it; like a board's, it is one for all, and stays."""

    _fed = 0
    _timeout = 0

    def __init__(self, _number: int = 0, timeout: int = 5000) -> None:
        import _thread

        if not WDT._timeout:
            _thread.start_new_thread(self._watch, ())
        WDT._timeout = timeout
        self.feed()

    def feed(self) -> None:
        WDT._fed = time.ticks_ms()

    def _watch(self) -> None:
        while True:
            time.sleep_ms(100)
            if time.ticks_diff(time.ticks_ms(), WDT._fed) > WDT._timeout:
                reset()


class Pin:
    IN, OUT, OPEN_DRAIN, PULL_UP, PULL_DOWN = range(5)

    def __init__(self, number: int, *_settings: int, **_more: int) -> None:
        self.number = number
        self._value = 0

    def value(self, value: "int | None" = None) -> int:
        if value is not None:
            self._value = value
        return self._value

    def on(self) -> None:
        self._value = 1

    def off(self) -> None:
        self._value = 0

    def toggle(self) -> None:
        self._value = 1 - self._value

    def __call__(self, value: "int | None" = None) -> int:
        return self.value(value)


class ADC:
    CORE_TEMP = 4

    def __init__(self, _channel: int) -> None:
        pass

    def read_u16(self) -> int:
        return 14290  # 27 °C of an RP2040

    def read_uv(self) -> int:
        return 719_500


class I2C:
    """A bus with a BME280 at 0x76: the example of its datasheet, 25.08 °C and 1006.53 hPa."""

    ADDRESS = 0x76
    CALIBRATION = struct.pack("<Hhh", 27504, 26435, -1000) + struct.pack(
        "<Hhhhhhhhh", 36477, -10685, 3024, 2855, 140, -7, 15500, -14600, 6000
    )
    REGISTERS = {  # noqa: RUF012 - nothing changes it
        0xD0: b"\x60",
        0x88: CALIBRATION + b"\x00\x4b",
        0xE1: struct.pack("<hB", 362, 0) + b"\x13\x29\x03\x1e",
        0xF7: b"\x65\x5a\xc0\x7e\xed\x00\x75\x30",
    }

    def __init__(self, *_settings: int, **_more: object) -> None:
        pass

    def scan(self) -> "list[int]":
        return [self.ADDRESS]

    def readfrom_mem(self, address: int, register: int, size: int) -> bytes:
        if address != self.ADDRESS:
            raise OSError(5)
        return self.REGISTERS[register][:size]

    def writeto_mem(self, address: int, _register: int, _data: bytes) -> None:
        if address != self.ADDRESS:
            raise OSError(5)

    def writeto(self, _address: int, _data: bytes) -> None:
        raise OSError(5)


class RTC:
    """A clock that begins with the board, long ago."""

    _now = (2021, 1, 1, 4, 0, 0, 0, 0)

    def datetime(self, now: "tuple[int, ...] | None" = None) -> "tuple[int, ...]":
        if now is not None:
            RTC._now = now
        return RTC._now


class Machine:
    Timer = Timer
    WDT = WDT
    RTC = RTC
    Pin = Pin
    ADC = ADC
    I2C = I2C
    SoftI2C = I2C
    PWRON_RESET, HARD_RESET, WDT_RESET, SOFT_RESET = 1, 2, 3, 4

    reset = staticmethod(reset)

    @staticmethod
    def unique_id() -> bytes:
        return b"\xe6\x61\x64\x08\x43\x1f\x2a\x24"

    @staticmethod
    def reset_cause() -> int:
        return 1

    @staticmethod
    def freq() -> int:
        return 125_000_000


class WLAN:
    """A station that has always been connected: the network is this computer's."""

    def __init__(self, _interface: int) -> None:
        pass

    def active(self, _on: bool) -> None:
        pass

    def isconnected(self) -> bool:
        return True


class Network:
    STA_IF = 0
    WLAN = WLAN


class MicroPython:
    """The module of this name, with a Ctrl-C that goes through the terminal's owner."""

    @staticmethod
    def kbd_intr(character: int) -> None:
        STDERR.write(b"\x03" if character == 3 else b"\x06")

    @staticmethod
    def const(value: int) -> int:
        return value

    @staticmethod
    def alloc_emergency_exception_buf(_size: int) -> None:
        pass


def mount(path: str, blocks: int) -> None:
    flash = Flash(path, blocks)
    try:
        system = vfs.VfsLfs2(flash)
    except OSError:
        vfs.VfsLfs2.mkfs(flash)
        system = vfs.VfsLfs2(flash)
    vfs.umount("/")
    vfs.mount(system, "/")
    os.chdir("/")
    sys.path[:] = ["", ".frozen", "/lib"]


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


def take() -> bytes:
    while True:
        try:
            byte = STDIN.read(1)
            if not byte:
                _exit(0)
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
        exec(compile(str(source, "utf-8"), "<stdin>", "exec"), names)
        STDOUT.write(b"\x04\x04>")
    except SystemExit:
        STDOUT.write(b"\x04\x04MPY: soft reboot\r\n")
        sys.exit(SOFT_RESET_RAW)
    except BaseException as failure:
        STDOUT.write(b"\x04")
        sys.print_exception(failure, sys.stdout)
        STDOUT.write(b"\x04>")


def friendly(byte: bytes) -> None:
    if byte == b"\x04":
        STDOUT.write(b"MPY: soft reboot\r\n")
        sys.exit(SOFT_RESET)
    if byte in b"\x02\r\x03":
        STDOUT.write(b"\r\n>>> ")


def repl(names: "dict[str, object]", *, raw: bool) -> None:
    """Serve the REPL until a reset; its modes and answers are those of the ports."""
    line = bytearray()
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


def main() -> None:
    sys.modules["machine"] = Machine
    sys.modules["micropython"] = MicroPython
    sys.modules["network"] = Network
    mount(sys.argv[1], int(sys.argv[2]))
    names: dict[str, object] = {"__name__": "__main__"}
    raw = "raw" in options
    files = ["boot.py"] if raw else ["boot.py", "main.py"]
    while True:
        try:
            MicroPython.kbd_intr(3)
            while files:
                run_file(files.pop(0), names)
            MicroPython.kbd_intr(3)
            STDOUT.write(RAW_BANNER if raw else b"\r\n>>> ")
            repl(names, raw=raw)
        except KeyboardInterrupt:
            files = []
        except SystemExit as end:
            STDOUT.flush()
            code = end.args[0] if end.args else SOFT_RESET
            _exit(code if code in (SOFT_RESET, SOFT_RESET_RAW) else SOFT_RESET)


main()
