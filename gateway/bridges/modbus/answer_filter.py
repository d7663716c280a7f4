"""Lets an answer on a serial line through only if it fits the question: a late one is dropped."""

from collections.abc import Callable

READS_OF_BITS = (1, 2)
READS_OF_WORDS = (3, 4)
WRITES = (5, 6, 15, 16)

REFUSED = 0x80
"""Bit that is set in the function code of a refusal."""

REFUSAL_BYTES = 5
WRITTEN_BYTES = 8
"""Bytes of whole frames; those of a read follow from its third byte."""

CRC_BYTES = 2


class AnswerFilter:
    """Sees every packet of a client that speaks RTU (pymodbus calls it to trace them).

    An RTU answer names neither its address nor its question. What comes from another device, for
    another function, of another length, or unasked answers an earlier question: it is left out of
    what the client decodes, and `on_late` is called with the number of its device.
    """

    def __init__(self, crc: Callable[[bytes], int], on_late: Callable[[int], None]) -> None:
        self._crc = crc
        self._on_late = on_late
        self._question = b""
        self._late = 0

    def __call__(self, sending: bool, data: bytes) -> bytes:
        """Return what the client is to see; `data` is all since it last sent."""
        if sending:
            self._question, self._late = data, 0
            return data
        if not self._question:
            self._late = 0  # the client does not keep what nobody waits for
        while True:
            frame = self._frame(data[self._late :])
            if not frame or fits(self._question, frame):
                return data[self._late :] if self._question else b""
            self._late += len(frame)
            self._on_late(frame[0])

    def expect_nothing(self) -> None:
        """Take that the question was answered, or that nobody waits for its answer any more."""
        self._question = b""

    def _frame(self, data: bytes) -> bytes:
        """Return the frame with which `data` begins, empty where none is complete."""
        size = _size(data)
        if not size or len(data) < size:
            return b""
        body, check = data[: size - CRC_BYTES], data[size - CRC_BYTES : size]
        return data[:size] if self._crc(body) == int.from_bytes(check, "big") else b""


def _size(data: bytes) -> int:
    if len(data) <= CRC_BYTES:
        return 0
    function = data[1]
    if function & REFUSED:
        return REFUSAL_BYTES
    if function in READS_OF_BITS + READS_OF_WORDS:
        return 3 + data[2] + CRC_BYTES
    return WRITTEN_BYTES if function in WRITES else 0


def fits(question: bytes, answer: bytes) -> bool:
    """Return whether a frame can answer a question, both with their checks."""
    if question[:1] != answer[:1] or not question:
        return False
    function = question[1]
    if answer[1] == function | REFUSED:
        return True
    if answer[1] != function:
        return False
    if function in WRITES:  # they say what was written
        return answer[2:6] == question[2:6]
    count = int.from_bytes(question[4:6], "big")
    return answer[2] == (count * 2 if function in READS_OF_WORDS else (count + 7) // 8)
