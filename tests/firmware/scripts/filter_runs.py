"""Runs programs over samples and prints what comes out: by both Pythons, which must agree.

Standard input has a line for each: a list of the program in hexadecimal and the samples.
"""

import binascii
import json
import struct
import sys

from node.filter import Filter


def value_of(sent: "list[int] | bool | int | str") -> "bool | int | float | str | tuple[int, int]":
    """Return a value as a node has it: a float comes as text, to be the same in both Pythons."""
    if isinstance(sent, str) and sent.startswith("float:"):
        return float(struct.unpack("<d", binascii.unhexlify(sent[6:]))[0])
    return (sent[0], sent[1]) if isinstance(sent, list) else sent


for line in sys.stdin:
    program, samples = json.loads(line)
    node = Filter(binascii.unhexlify(program))
    for value, unit, now in samples:
        reading = value_of(value)
        print(node.evaluate(reading, unit, now), node.passes(reading, unit, now))
