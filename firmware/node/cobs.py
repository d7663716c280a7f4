"""Consistent overhead byte stuffing: bytes without a zero, so that a zero can end a frame."""

DATA_MAX = 253
"""Bytes that can be stuffed: below 254 the code is exactly one byte longer than the data."""


def encode(data: bytes) -> bytes:
    """Return `data` without zero bytes, one byte longer; ValueError beyond DATA_MAX bytes."""
    if len(data) > DATA_MAX:
        raise ValueError("%d bytes: at most %d can be stuffed" % (len(data), DATA_MAX))
    return b"".join([bytes([len(block) + 1]) + block for block in data.split(b"\0")])


def decode(stuffed: bytes) -> bytes:
    """Return the data that `encode` was given; ValueError when no data gives these bytes."""
    data = bytearray()
    position = 0
    while position < len(stuffed):
        step = stuffed[position]
        block = stuffed[position + 1 : position + step]
        if step == 0 or len(block) != step - 1:
            raise ValueError("byte %d points outside the frame" % position)
        data.extend(block)
        data.append(0)
        position += step
    return bytes(data[:-1])  # the last block's zero stands for the end
