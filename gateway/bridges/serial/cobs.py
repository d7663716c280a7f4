"""Consistent overhead byte stuffing: bytes without a zero, so that a zero can end a frame."""

DATA_MAX = 253
"""Bytes that fit one block; frames are shorter, so the protocol never needs a second."""


class StuffingError(ValueError):
    """Bytes that the stuffing of no data gives."""


def stuff(data: bytes) -> bytes:
    """Return `data` (at most DATA_MAX bytes) without zero bytes, one byte longer."""
    if len(data) > DATA_MAX:
        raise StuffingError(f"{len(data)} bytes: at most {DATA_MAX} can be stuffed")
    return b"".join([bytes((len(run) + 1,)) + run for run in data.split(b"\0")])


def unstuff(stuffed: bytes) -> bytes:
    """Return what `stuff` was given; raises StuffingError when no data gives these bytes."""
    runs = []
    position = 0
    while position < len(stuffed):
        end = position + stuffed[position]
        if not position < end <= len(stuffed):
            raise StuffingError(f"byte {position} points outside the {len(stuffed)} bytes")
        runs.append(stuffed[position + 1 : end])
        position = end
    return b"\0".join(runs)
