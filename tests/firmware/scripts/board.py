"""Runs main.py under MicroPython; the board's UART is standard input and output."""

import select
import sys


class UART:
    def __init__(self, number: int, baud: int, rxbuf: int) -> None:
        print("UART", number, baud, rxbuf, file=sys.stderr)
        self._ready = select.poll()
        self._ready.register(sys.stdin, select.POLLIN)

    def read(self) -> "bytes | None":
        heard = b""
        while self._ready.poll(0):
            heard += sys.stdin.buffer.read(1)
        return heard or None

    def write(self, data: bytes) -> int:
        return sys.stdout.buffer.write(data)


class WDT:
    """Says when it was fed first."""

    def __init__(self, timeout: int) -> None:
        self._reported = f"watched for {timeout} ms"

    def feed(self) -> None:
        if self._reported:
            print(self._reported, file=sys.stderr)
            self._reported = ""


class Machine:
    UART = UART
    WDT = WDT

    def unique_id(self) -> bytes:
        return b"\x01\xab\xff"


class BLE:
    """Says what is advertised."""

    def active(self, _on: bool) -> None:
        pass

    def config(self, _name: str) -> "tuple[int, bytes]":
        return 0, b"\xa4\xc1\x38\x11\x22\x33"

    def gap_advertise(
        self, interval_us: int, adv_data: bytes, resp_data: bytes, connectable: bool
    ) -> None:
        print(interval_us, adv_data.hex(), resp_data.hex(), connectable, file=sys.stderr)


class Bluetooth:
    BLE = BLE


sys.modules["bluetooth"] = Bluetooth()  # type: ignore[assignment]  # all that the node asks of it
sys.modules["machine"] = Machine()  # type: ignore[assignment]  # all that main.py asks of it
import main  # noqa: E402  # after its board is there

main.main(sys.argv[1])
