"""Drops late answers on a serial line: only an answer that fits the question passes."""

from collections.abc import Callable

READS_OF_BITS = (1, 2)
READS_OF_WORDS = (3, 4)
WRITES = (5, 6, 15, 16)

REFUSED = 0x80
"""Function code bit of an exception answer."""

REFUSAL_BYTES = 5
WRITTEN_BYTES = 8
"""Sizes of whole frames; a read answer has its size in the third byte."""

CRC_BYTES = 2


class AnswerFilter:
    """Filters every packet of an RTU client (pymodbus calls it to trace them).

    An RTU answer names neither its address nor its question. A frame from another device, for
    another function, of another length, or unasked answers an earlier question. It is removed
    before the client decodes, like noise before an answer, and `on_late` is called with the number
    of its device.
    """

    def __init__(self, crc: Callable[[bytes], int], on_late: Callable[[int], None]) -> None:
        self._crc = crc
        self._on_late = on_late
        self._question = b""
        self._checked = 0

    def __call__(self, sending: bool, data: bytes) -> bytes:
        """Return the bytes for the client.

        `data` is everything received that it has not consumed.
        """
        if sending:
            self._question, self._checked = data, 0
            return data
        if self._checked > len(data):  # the client has discarded an excess of bytes
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
        """Note that no answer is awaited any more, and that the client has cleared its buffer."""
        self._question, self._checked = b"", 0

    def _frame_size(self, data: bytes) -> int | None:
        """Return the size of the frame at the start of `data`, 0 for none.

        None while too few bytes have arrived to decide.
        """
        if len(data) <= CRC_BYTES:
            return None
        size = _size(data)
        if size > len(data):
            return None
        body, check = data[: size - CRC_BYTES], data[size - CRC_BYTES : size]
        return size if size and self._crc(body) == int.from_bytes(check, "big") else 0


def _size(data: bytes) -> int:
    """Return the size of a frame with this start, 0 if no frame starts so."""
    function = data[1]
    if function & REFUSED:
        return REFUSAL_BYTES
    if function in READS_OF_BITS + READS_OF_WORDS:
        return 3 + data[2] + CRC_BYTES
    return WRITTEN_BYTES if function in WRITES else 0


def fits(question: bytes, answer: bytes) -> bool:
    """Return whether a frame can answer a question, both with their CRC."""
    if question[:1] != answer[:1] or not question:
        return False
    function = question[1]
    if answer[1] == function | REFUSED:
        return True
    if answer[1] != function:
        return False
    if function in WRITES:  # these echo what was written
        return answer[2:6] == question[2:6]
    count = int.from_bytes(question[4:6], "big")
    return answer[2] == (count * 2 if function in READS_OF_WORDS else (count + 7) // 8)
