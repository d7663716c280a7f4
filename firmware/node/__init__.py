"""A sensor node for MicroPython, whose compiler puts a `const` number where its name stands.

A name that begins with _ takes no memory then.
"""


def const(value: int) -> int:
    """Return the value: for CPython, and for type checkers."""
    return value
