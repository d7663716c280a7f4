"""The boot loader in an ESP32's ROM, as far as esptool asks it: SLIP on a pseudo-terminal.

    python esp32_rom.py LINK IMAGE

LINK becomes a link to the terminal. It ends with standard input, and the flash is in IMAGE then.
"""

import hashlib
import os
import select
import struct
import sys
import tty
import zlib
from collections.abc import Callable
from pathlib import Path

FLASH_BYTES = 4 * 1024 * 1024
SYNC, READ, WRITE = 0x08, 0x0A, 0x09
BEGIN, DATA = (0x02, 0x10), (0x03, 0x11)
DEFLATED = 0x10
MD5 = 0x13
ACCEPTED = (0x04, 0x0B, 0x0D, 0x0F, 0x12)  # ends; parameters, attaching, the baud rate
SPI_COMMAND, SPI_ANSWER = 0x3FF42000, 0x3FF42080
SPI_USER = 1 << 18
FLASH_ID = 0x1640EF
OK, BAD_CHECK, UNKNOWN = b"\0\0\0\0", b"\1\7\0\0", b"\1\5\0\0"


class Rom:
    """Answers the commands of the serial protocol (Espressif's documentation of esptool)."""

    def __init__(self) -> None:
        self.flash = bytearray(b"\xff" * FLASH_BYTES)
        self._registers = {0x40001000: 0x00F01D83, 0x3FF5A004: 0x11223344, 0x3FF5A008: 0xAABB}
        self._position = 0
        self._inflate: Callable[[bytes], bytes] = bytes

    def answer(self, operation: int, check: int, data: bytes) -> list[tuple[int, bytes, bytes]]:
        """Return value, data and status of each answer."""
        if operation == SYNC:
            return [(0x20120707, b"", OK)] * 8
        if operation == READ:
            (address,) = struct.unpack("<I", data[:4])
            return [(self._registers.get(address, 0), b"", OK)]
        if operation == WRITE:
            self._set(*struct.unpack("<II", data[:8]))
        elif operation in BEGIN:
            self._position = struct.unpack("<I", data[12:16])[0]
            self._inflate = zlib.decompressobj().decompress if operation == DEFLATED else bytes
        elif operation in DATA:
            return [(0, b"", self._write(check, data))]
        elif operation == MD5:
            address, size = struct.unpack("<II", data[:8])
            digest = hashlib.md5(self.flash[address : address + size]).hexdigest()
            return [(0, digest.encode(), OK)]
        elif operation not in ACCEPTED:
            return [(0, b"", UNKNOWN)]
        return [(0, b"", OK)]

    def _set(self, address: int, value: int) -> None:
        self._registers[address] = value
        if address == SPI_COMMAND and value & SPI_USER:
            self._registers.update({SPI_COMMAND: 0, SPI_ANSWER: FLASH_ID})

    def _write(self, check: int, data: bytes) -> bytes:
        (size,) = struct.unpack("<I", data[:4])
        payload = data[16 : 16 + size]
        found = 0xEF
        for byte in payload:
            found ^= byte
        if found != check:
            return BAD_CHECK
        content = self._inflate(payload)
        self.flash[self._position : self._position + len(content)] = content
        self._position += len(content)
        return OK


def serve(rom: Rom, terminal: int) -> None:
    received = b""
    while True:
        ready, _, _ = select.select([0, terminal], [], [])
        if 0 in ready:
            return
        received += os.read(terminal, 65_536)
        *packets, received = received.split(b"\xc0")
        for packet in packets:
            plain = packet.replace(b"\xdb\xdc", b"\xc0").replace(b"\xdb\xdd", b"\xdb")
            if len(plain) < 8:
                continue
            _, operation, _, check = struct.unpack("<BBHI", plain[:8])
            for value, data, status in rom.answer(operation, check, plain[8:]):
                head = struct.pack("<BBHI", 1, operation, len(data) + len(status), value)
                body = (head + data + status).replace(b"\xdb", b"\xdb\xdd")
                os.write(terminal, b"\xc0" + body.replace(b"\xc0", b"\xdb\xdc") + b"\xc0")


def main() -> None:
    master, slave = os.openpty()
    tty.setraw(slave)
    Path(sys.argv[1]).symlink_to(os.ttyname(slave))
    print("ready", flush=True)
    rom = Rom()
    serve(rom, master)
    Path(sys.argv[2]).write_bytes(rom.flash)


if __name__ == "__main__":
    main()
