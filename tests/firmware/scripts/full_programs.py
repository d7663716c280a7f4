"""Prints the memory that eight filter programs of 200 bytes take, of those that take most."""

import gc
import struct

from node.programs import Programs

PROGRAMS = (
    b"\1\x10\0" + b"\x30" * 197,  # TRUTH(value) and 197 times NOT
    b"\1\x10\0" + b"\x10\0\x31" * 65,  # TRUTH(value), TRUTH(value), AND
    b"\1\x20\2\2" + b"\x20\2\2\x31" * 49,  # NULL = NULL
)


def argument(number: int, program: bytes) -> bytes:
    name = b"q%d" % number
    return struct.pack("<IIB", 1, 0, len(name)) + name + program


def allocated() -> int:
    gc.collect()
    used: int = gc.mem_alloc()  # type: ignore[attr-defined]  # MicroPython's
    return used


def taken(program: bytes) -> int:
    programs = Programs()
    before = allocated()
    statuses = [programs.install(argument(number, program)) for number in range(8)]
    assert statuses == [0] * 8
    return allocated() - before


taken(PROGRAMS[0])  # loads the interpreter
print(max([taken(each) for each in PROGRAMS]))
