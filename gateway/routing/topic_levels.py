"""Topic levels as small numbers: each different text is kept once, for as long as it is in use."""

from gateway.routing.columns import LEAST, resized, room_for, zeros

FIRST_TABLE = 64
"""Places of the table that texts are found by: a power of two, of which at most 2/3 are taken."""

FEW_HOLES = 4_096
"""Bytes of texts out of use below which nothing is moved together."""

SHORT = 16
"""Bytes up to which texts are compared byte by byte: compiled, that is faster than a copy."""


class TopicLevels:
    """Numbers from 1 for texts; a number is free again when its last use is over.

    The texts stand one behind the other in one piece of memory. What goes out of use leaves a
    hole, and when half of it is holes the rest moves together: numbers stay as they are.
    """

    __slots__ = (
        "_begins",
        "_ends",
        "_free",
        "_holes",
        "_mask",
        "_size",
        "_table",
        "_texts",
        "_uses",
        "count",
    )

    def __init__(self) -> None:
        self._texts = bytearray()
        self._holes = 0  # bytes
        self._begins = zeros(LEAST)  # of a free number: the next free one
        self._ends = zeros(LEAST)
        self._uses = zeros(LEAST)  # 0 for a free number
        self._size = 1  # numbers that were ever in use, and 0, which is none
        self._free = 0  # the first free number below _size
        self._table = zeros(FIRST_TABLE)
        self._mask = FIRST_TABLE - 1
        self.count = 0

    def find(self, text: bytes) -> int:
        """Return the number of the text, 0 if it has none."""
        place = hash(text) & self._mask
        while True:
            number = self._table[place]
            if number == 0 or self._is(number, text):
                return number
            place = (place + 1) & self._mask

    def _is(self, number: int, text: bytes) -> bool:
        begin, size = self._begins[number], len(text)
        if self._ends[number] - begin != size:
            return False
        if size > SHORT:
            return self._texts[begin : begin + size] == text
        for place in range(size):  # noqa: SIM110  # a generator does not compile here
            if self._texts[begin + place] != text[place]:
                return False
        return True

    def text(self, number: int) -> bytes:
        """Return the text of a number that is in use."""
        return bytes(self._texts[self._begins[number] : self._ends[number]])

    def use(self, text: bytes) -> int:
        """Return the number of the text, a new one if it has none, with one use more."""
        number = self.find(text)
        if number == 0:
            number = self._add(text)
        self._uses[number] += 1
        return number

    def release(self, number: int) -> None:
        """Take back one use of the number."""
        self._uses[number] -= 1
        if self._uses[number] == 0:
            self._remove(number)

    def memory(self) -> int:
        """Return the bytes of texts and columns."""
        return len(self._texts) + 4 * (3 * len(self._begins) + len(self._table))

    def _add(self, text: bytes) -> int:
        if 3 * (self.count + 1) > 2 * len(self._table):
            self._rebuild_table(2 * len(self._table))
        number = self._new_number()
        self._begins[number] = len(self._texts)
        self._texts += text
        self._ends[number] = len(self._texts)
        self._put(number, text)
        self.count += 1
        return number

    def _new_number(self) -> int:
        number = self._free
        if number:
            self._free = self._begins[number]
            return number
        if self._size == len(self._begins):
            self._resize_columns(room_for(self._size))
        self._size += 1
        return self._size - 1

    def _resize_columns(self, room: int) -> None:
        self._begins = resized(self._begins, room)
        self._ends = resized(self._ends, room)
        self._uses = resized(self._uses, room)

    def _put(self, number: int, text: bytes) -> None:
        place = hash(text) & self._mask
        while self._table[place]:
            place = (place + 1) & self._mask
        self._table[place] = number

    def _remove(self, number: int) -> None:
        self._take(number)
        self._holes += self._ends[number] - self._begins[number]
        self._begins[number] = self._free
        self._ends[number] = 0
        self._free = number
        self.count -= 1
        if self._holes > FEW_HOLES and 2 * self._holes > len(self._texts):
            self._close_holes()
        if len(self._table) > FIRST_TABLE and 6 * self.count < len(self._table):
            self._cut_back()

    def _take(self, number: int) -> None:
        """Take the number out of the table; those it had displaced move up."""
        hole = hash(self.text(number)) & self._mask
        while self._table[hole] != number:
            hole = (hole + 1) & self._mask
        place = (hole + 1) & self._mask
        while self._table[place]:
            home = hash(self.text(self._table[place])) & self._mask
            # It may move into the hole unless its home lies behind the hole.
            if (place - home) & self._mask >= (place - hole) & self._mask:
                self._table[hole] = self._table[place]
                hole = place
            place = (place + 1) & self._mask
        self._table[hole] = 0

    def _rebuild_table(self, size: int) -> None:
        self._table = zeros(size)
        self._mask = size - 1
        for number in range(1, self._size):
            if self._uses[number]:
                self._put(number, self.text(number))

    def _cut_back(self) -> None:
        """Give memory back: a shorter table, and columns without the free numbers at their end."""
        while self._size > 1 and self._uses[self._size - 1] == 0:
            self._size -= 1
        self._free = 0
        for number in range(self._size - 1, 0, -1):
            if self._uses[number] == 0:
                self._begins[number] = self._free
                self._free = number
        self._resize_columns(room_for(self._size))
        self._rebuild_table(len(self._table) // 2)

    def _close_holes(self) -> None:
        texts = bytearray()
        for number in range(1, self._size):
            if self._uses[number]:
                text = self._texts[self._begins[number] : self._ends[number]]
                self._begins[number] = len(texts)
                texts += text
                self._ends[number] = len(texts)
        self._texts = texts
        self._holes = 0
