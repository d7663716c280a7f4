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
    what the client decodes, as noise before an answer is, and `on_late` is called with the number
    of its device.
    """

    def __init__(self, crc: Callable[[bytes], int], on_late: Callable[[int], None]) -> None:
        self._crc = crc
        self._on_late = on_late
        self._question = b""
        self._checked = 0

    def __call__(self, sending: bool, data: bytes) -> bytes:
        """Return what the client is to see; `data` is all that came and that it has not taken."""
        if sending:
            self._question, self._checked = data, 0
            return data
        if self._checked > len(data):  # the client has thrown away what was too much
            self._checked = 0
        while (size := self._frame_size(data[self._checked :])) is not None:
            frame = data[self._checked : self._checked + size]
            if size and fits(self._question, frame):
                self._question = b""
                return frame
            self._checked += size or 1
            if size:
                self._on_late(frame[0])
        return b""

    def expect_nothing(self) -> None:
        """Take that nobody waits for an answer any more, and that the client has forgotten all."""
        self._question, self._checked = b"", 0

    def _frame_size(self, data: bytes) -> int | None:
        """Return the bytes of the frame with which `data` begins, 0 for none.

        None where more has to come before that can be said.
        """
        if len(data) <= CRC_BYTES:
            return None
        size = _size(data)
        if size > len(data):
            return None
        body, check = data[: size - CRC_BYTES], data[size - CRC_BYTES : size]
        return size if size and self._crc(body) == int.from_bytes(check, "big") else 0


def _size(data: bytes) -> int:
    """Return the bytes that a frame has which begins so, 0 for what begins none."""
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
