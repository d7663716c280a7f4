"""Drops what answers no question: late answers, answers of other devices, and noise."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

READS_OF_BITS = (1, 2)
READS_OF_WORDS = (3, 4)
WRITES = (5, 6, 15, 16)

REFUSED = 0x80
"""Function code bit of an exception answer."""

REFUSAL_BYTES = 3
WRITTEN_BYTES = 6
"""Sizes of answers from the device's number; that of a read is in its third byte."""

CRC_BYTES = 2

HEADER_BYTES = 6
"""Transaction number, protocol (0) and size of the rest, two bytes each, before an answer on TCP
(Modbus Messaging on TCP/IP, 3.1.3)."""

REST = range(3, 255)
"""Possible sizes of the rest: the device's number, the function and at least one byte."""


UNNUMBERED = b"\0\0"
"""The transaction number of devices that do not repeat the question's; none is asked with it."""


class Framing(Protocol):
    """How answers are framed."""

    @property
    def numbered(self) -> bool:
        """Whether frames have a transaction number."""

    def size(self, data: bytes) -> int | None:
        """Return the size of the frame at the start of `data`, 0 for none.

        None while too few bytes have arrived to decide.
        """

    def parts(self, frame: bytes) -> tuple[bytes, bytes]:
        """Return the transaction number, and the body that begins with the device's number."""


@dataclass(frozen=True, slots=True)
class RtuFraming:
    """Frames on a serial line: a body and its CRC, without a transaction number."""

    crc: Callable[[bytes], int]
    numbered = False

    def size(self, data: bytes) -> int | None:
        """Return the size of a frame with a correct CRC."""
        if len(data) <= CRC_BYTES:
            return None
        size = body_size(data)
        if size and size + CRC_BYTES > len(data):
            return None
        body, check = data[:size], data[size : size + CRC_BYTES]
        return size + CRC_BYTES if size and self.crc(body) == int.from_bytes(check, "big") else 0

    def parts(self, frame: bytes) -> tuple[bytes, bytes]:
        """Return no number, and the frame without its CRC."""
        return b"", frame[:-CRC_BYTES]


class TcpFraming:
    """Frames on TCP: a header and a body."""

    numbered = True

    def size(self, data: bytes) -> int | None:
        """Return the size of a frame with a possible header."""
        if len(data) < HEADER_BYTES:
            return None
        rest = int.from_bytes(data[4:HEADER_BYTES], "big")
        if any(data[2:4]) or rest not in REST:
            return 0
        return None if len(data) < HEADER_BYTES + rest else HEADER_BYTES + rest

    def parts(self, frame: bytes) -> tuple[bytes, bytes]:
        """Return the transaction number, and what follows the header."""
        return frame[:2], frame[HEADER_BYTES:]


class AnswerFilter:
    """Filters every packet of a client (pymodbus calls it to trace them).

    A frame with another transaction number, from another device, for another function, of another
    length, or unasked answers an earlier question or none. It is removed before the client decodes,
    like noise before an answer, and `on_late` is called with the number of its device. On a serial
    line nothing in an answer names its question, so one that fits may still be late. So it is on
    TCP if the first answer has the number 0. There an answer for which `is_early` returns True is
    held back: if another one follows, that is the answer.
    """

    def __init__(
        self,
        framing: Framing,
        on_late: Callable[[int], None],
        is_early: Callable[[], bool] = lambda: False,
    ) -> None:
        self.numbered = None if framing.numbered else False
        """Whether answers name their questions: some devices on TCP do not. None until one does."""
        self._framing = framing
        self.held = False
        """Whether an answer to the question was held back."""
        self._on_late = on_late
        self._is_early = is_early
        self._question = b""
        self._checked = 0

    def __call__(self, sending: bool, data: bytes) -> bytes:
        """Return the bytes for the client.

        `data` is everything received that it has not consumed.
        """
        if sending:
            self._question, self._checked, self.held = data, 0, False
            return data
        if self._checked > len(data):  # the client has discarded an excess of bytes
            self._checked = 0
        while (size := self._framing.size(data[self._checked :])) is not None:
            frame = data[self._checked : self._checked + size]
            answers = bool(size) and self._is_answer(frame)
            if answers and not self._holds(frame):
                self._question = b""
                return frame
            self._checked += size or 1
            if size and not answers:
                self._on_late(self._framing.parts(frame)[1][0])
        return b""

    def expect_nothing(self) -> None:
        """Note that no answer is awaited any more, and that the client has cleared its buffer."""
        self._question, self._checked = b"", 0

    def _holds(self, frame: bytes) -> bool:
        """Return whether an answer is held back; a second one shows that the first was another's.

        The answer to a write names what was written.
        """
        body = self._framing.parts(frame)[1]
        if self.numbered or body[1] in WRITES:
            return False
        if self.held:
            self._on_late(body[0])
        self.held = self._is_early()
        return self.held

    def _is_answer(self, frame: bytes) -> bool:
        if not self._question:
            return False
        requested, question = self._framing.parts(self._question)
        answered, body = self._framing.parts(frame)
        if self.numbered is None and answered in (requested, UNNUMBERED):
            self.numbered = answered == requested
        named = requested if self.numbered or not requested else UNNUMBERED
        return answered == named and fits(question, body, shorter=bool(self.numbered))


def body_size(data: bytes) -> int:
    """Return the size of an answer from the device's number, 0 if none starts so."""
    function = data[1]
    if function & REFUSED:
        return REFUSAL_BYTES
    if function in READS_OF_BITS + READS_OF_WORDS:
        return 3 + data[2]
    return WRITTEN_BYTES if function in WRITES else 0


def fits(question: bytes, answer: bytes, *, shorter: bool = False) -> bool:
    """Return whether a body can answer another; both begin with the device's number.

    Device 0 is whichever is there. A numbered answer may have fewer registers than were asked for:
    the device sends no more.
    """
    if question[0] not in (0, answer[0]) or len(answer) != body_size(answer):
        return False
    function = question[1]
    if answer[1] == function | REFUSED:
        return True
    if answer[1] != function:
        return False
    if function in WRITES:  # these echo what was written
        return answer[2:6] == question[2:6]
    count = int.from_bytes(question[4:6], "big")
    wanted = count * 2 if function in READS_OF_WORDS else (count + 7) // 8
    return answer[2] < wanted if shorter and answer[2] != wanted else answer[2] == wanted
