"""Topic levels as small numbers: each different text is stored once, while it is in use."""

from gateway.routing.trie.columns import BYTES, LARGE, LEAST, SHORTS, capacity_for, resized, zeros

FIRST_TABLE = 64
"""Slots of the table of texts; at most 3/4 of them are used."""

FEW_HOLES = 4_096
"""Bytes of unused texts below which nothing is compacted."""

PIECE = 16
"""Bits of an offset within a piece of memory, below the piece's number: a piece has 65,536
bytes."""

SHORT = 16 if __file__.endswith(".so") else 0
"""Bytes up to which texts are compared byte by byte: compiled, that is faster than a call."""

NUMBER = 7
"""Bytes of a number in all columns."""

TABLE_PLACE = 4

AT_ONCE = 4_096
"""Numbers up to which a table is rebuilt at once; of more, some move with each change."""

STEP = 64
"""Numbers that move into a new table with each text that is added or removed. They are more if few
of many are left, so that all have moved before the next table is due, a quarter of whose slots are
filled until then."""

_NOTHING = bytearray()

MANY = 255
"""Uses from which on a dict counts them."""

MANY_OVERHEAD = 150
"""Bytes of a count in the dict."""

# Compiled, these are C names that no other module sees.
_MANY = MANY
_STEP = STEP
_PIECE = PIECE
_OFFSET_MASK = (1 << PIECE) - 1
_SHORT = SHORT
_WORD = 0xFFFF_FFFF


class TopicLevels:
    """Numbers from 1 for texts; a number is free again after its last use.

    The texts, of 65,535 bytes at most, are stored one after another in pieces of memory. A removed
    text leaves a hole; when half of the memory is holes the texts are compacted, and their numbers
    stay the same.

    Work on all numbers is done in steps. Numbers below `moved` that are in use are in the new
    table; their texts are in new pieces if the old ones are being compacted. Unused ones are free.
    """

    __slots__ = (
        "_at_once",
        "_begins",
        "_bytes",
        "_cuts",
        "_free",
        "_holes",
        "_many",
        "_old_bytes",
        "_old_pieces",
        "_old_slots",
        "_old_table",
        "_piece",
        "_size",
        "_sizes",
        "_slots",
        "_spare",
        "_step",
        "_table",
        "_texts",
        "_uses",
        "count",
        "moved",
    )

    def __init__(self, at_once: int = AT_ONCE) -> None:
        self._at_once = at_once
        self._texts = [bytearray()]  # several, since a long bytearray is moved when it grows
        self._piece = 0  # the index of the piece for new texts
        self._spare: list[int] = []  # indexes of freed pieces
        self._old_pieces: set[int] = set()  # indexes of pieces that are being compacted
        self._old_bytes = 0  # of texts and holes in them
        self._bytes = 0  # of all texts and holes
        self._holes = 0  # bytes
        self._begins = zeros(LEAST)  # of a free number: the next free one
        self._sizes = zeros(LEAST, SHORTS)
        self._uses = zeros(LEAST, BYTES)  # 0 for a free number
        self._many: dict[int, int] = {}  # uses of numbers that have MANY
        self._size = 1  # numbers ever used, with 0, which is none
        self._free = 0  # the first free number below _size
        self._table = zeros(FIRST_TABLE)
        self._slots = FIRST_TABLE
        self._old_table = zeros(1)  # the previous table, while numbers move from it
        self._old_slots = 0
        self._step = STEP
        self.moved = 1
        self._cuts = 0  # numbers freed since the columns were last shortened
        self.count = 0

    def find(self, text: bytes) -> int:
        """Return the number of the text, 0 if it has none."""
        size = len(text)
        # a multiplication instead of a modulo allows any size
        slot = (hash(text) & _WORD) * self._slots >> 32
        while True:  # it ends, since a quarter of the slots is free
            number = self._table[slot]
            if number == 0:
                return self._old_find(text) if self._old_slots else 0
            if self._sizes[number] == size and self._is(number, text):
                return number
            slot += 1
            if slot == self._slots:
                slot = 0

    def _old_find(self, text: bytes) -> int:
        """Return the number of the text by the old table, 0 if it has none.

        Nothing is removed from that table: an entry counts only if the number still is the text's.
        """
        size = len(text)
        slot = (hash(text) & _WORD) * self._old_slots >> 32
        while True:
            number = self._old_table[slot]
            if number == 0:
                return 0
            if (
                # the columns may have been shortened since: then the number does not exist
                number < self._size
                and self._uses[number]
                and self._sizes[number] == size
                and self._is(number, text)
            ):
                return number
            slot += 1
            if slot == self._old_slots:
                slot = 0

    def _home(self, text: bytes) -> int:
        """Return the text's first slot in the table."""
        return (hash(text) & _WORD) * self._slots >> 32

    def _is(self, number: int, text: bytes) -> bool:
        """Return whether the number is that of the text; their sizes are equal."""
        begin, size = self._begins[number], len(text)
        texts = self._texts[begin >> _PIECE]
        begin &= _OFFSET_MASK
        if size > _SHORT:
            return texts.startswith(text, begin)
        # Compiled, a loop over a few bytes is faster than the slice that a comparison needs.
        for offset in range(size):  # noqa: SIM110  # a generator does not compile here
            if texts[begin + offset] != text[offset]:
                return False
        return True

    def text(self, number: int) -> bytes:
        """Return the text of a number that is in use."""
        begin = self._begins[number]
        texts = self._texts[begin >> _PIECE]
        begin &= _OFFSET_MASK
        return bytes(texts[begin : begin + self._sizes[number]])

    def use(self, text: bytes) -> int:
        """Add a use of the text; return its number, a new one if it has none."""
        number = self.find(text)
        if not number:
            return self.add(text)
        self.use_again(number)
        return number

    def add(self, text: bytes) -> int:
        """Return a new number, with one use, for a new text."""
        # probing gets slow in a fuller table
        if 4 * (self.count + 1) > 3 * self._slots:
            self._rebuild_table(self._slots + (self._slots >> 1))
        if self._old_slots:
            self._move(self._step)
        number = self._new_number()
        self._append(number, text)
        self._put(number, text)
        # last, so that a move in between does not insert it twice
        self._uses[number] = 1
        self.count += 1
        return number

    def _append(self, number: int, text: bytes) -> None:
        """Store the text of a number behind all others."""
        if len(self._texts[self._piece]) + len(text) > _OFFSET_MASK:
            self._open_piece()
        texts = self._texts[self._piece]
        self._begins[number] = self._piece << _PIECE | len(texts)
        self._sizes[number] = len(text)
        texts += text
        self._bytes += len(text)

    def _open_piece(self) -> None:
        if self._spare:
            self._piece = self._spare.pop()
            self._texts[self._piece] = bytearray()
        else:
            self._piece = len(self._texts)
            self._texts.append(bytearray())

    def use_again(self, number: int) -> None:
        """Add one use of the number."""
        uses = self._uses[number]
        if uses < _MANY - 1:  # a byte counts for nearly all levels, a dict for the few others
            self._uses[number] = uses + 1
        else:
            self._uses[number] = _MANY
            self._many[number] = self._many.get(number, uses) + 1

    def release(self, number: int) -> None:
        """Remove one use of the number."""
        uses = self._uses[number]
        if uses == _MANY:
            self._release_one_of_many(number)
        else:
            self._uses[number] = uses - 1
            if uses == 1:
                self._remove(number)

    def _release_one_of_many(self, number: int) -> None:
        left = self._many[number] - 1
        if left < _MANY:
            del self._many[number]
            self._uses[number] = left
        else:
            self._many[number] = left

    def memory(self) -> int:
        """Return the bytes of texts and columns."""
        places = len(self._begins)
        if places >= LARGE:  # pages to itself: only written ones are allocated
            places = self._size
        many = MANY_OVERHEAD * len(self._many)
        return self._bytes + NUMBER * places + many + TABLE_PLACE * (self._slots + self._old_slots)

    def _new_number(self) -> int:
        number = self._free
        if number:
            self._free = self._begins[number]
            return number
        if self._size == len(self._begins):
            self._resize_columns(capacity_for(self._size))
        self._size += 1
        return self._size - 1

    def _resize_columns(self, capacity: int) -> None:
        self._begins = resized(self._begins, capacity, self._size)
        self._sizes = resized(self._sizes, capacity, self._size)
        self._uses = resized(self._uses, capacity, self._size)

    def _put(self, number: int, text: bytes) -> None:
        """Insert the number into the table, unless it is there."""
        slot = (hash(text) & _WORD) * self._slots >> 32
        while self._table[slot]:
            if self._table[slot] == number:
                return
            slot += 1
            if slot == self._slots:
                slot = 0
        self._table[slot] = number

    def _remove(self, number: int) -> None:
        self._unlink(number)
        # those pieces are freed as a whole
        if self._begins[number] >> _PIECE not in self._old_pieces:
            self._holes += self._sizes[number]
        self._sizes[number] = 0
        # Otherwise `_move` frees it when it reaches it.
        if not self._old_slots or number < self.moved:
            self._set_free(number)
        self.count -= 1
        self._cuts += 1
        if self._old_slots:
            self._move(self._step)
        else:
            self._give_back()

    def _give_back(self) -> None:
        """Free memory if it is much: of holes, of the table, or of the columns' end."""
        if self._holes > FEW_HOLES and 2 * self._holes > self._bytes:
            self._close_holes()
        # shortening copies all columns, so it needs as many removals
        elif self._uses[self._size - 1] == 0 and 2 * self._cuts > self._size:
            self._cuts = 0
            self._cut_back()
        # far below the fill at which the table grows, so that it does not alternate
        elif self._slots > FIRST_TABLE and 6 * self.count < self._slots:
            self._cut_back()

    def _set_free(self, number: int) -> None:
        self._begins[number] = self._free
        self._free = number

    def _unlink(self, number: int) -> None:
        """Remove the number from the table, and move those up that it had displaced."""
        hole = self._home(self.text(number))
        while self._table[hole] != number:
            if self._table[hole] == 0:
                return  # it has not moved here yet
            hole = hole + 1 if hole + 1 < self._slots else 0
        slot = hole + 1 if hole + 1 < self._slots else 0
        while self._table[slot]:
            home = self._home(self.text(self._table[slot]))
            # It may fill the hole unless its home lies behind the hole.
            if self._distance(home, slot) >= self._distance(hole, slot):
                self._table[hole] = self._table[slot]
                hole = slot
            slot = slot + 1 if slot + 1 < self._slots else 0
        self._table[hole] = 0

    def _distance(self, first: int, last: int) -> int:
        """Return the steps from one slot of the table to another, wrapping at its end."""
        return last - first if last >= first else last - first + self._slots

    def _rebuild_table(self, size: int) -> None:
        """Begin another table; if the numbers are many they move into it step by step."""
        self._move(self._size)  # finish the previous move first
        self._old_table, self._old_slots = self._table, self._slots
        self._table = zeros(size)
        self._slots = size
        self._step = max(_STEP, 4 * self._size // size)
        # `_move` builds the list of free numbers again
        self._free = 0
        self.moved = 1
        if self._size <= self._at_once:
            self._move(self._size)

    def _move(self, most: int) -> None:
        """Move up to this many numbers from the old table into the new one."""
        if not self._old_slots:
            return
        end = min(self._size, self.moved + most)
        for number in range(self.moved, end):
            if self._uses[number]:
                text = self.text(number)
                self._put(number, text)
                if self._begins[number] >> _PIECE in self._old_pieces:
                    self._append(number, text)
            else:
                self._set_free(number)
        self.moved = end
        if end >= self._size:
            self._old_table, self._old_slots = zeros(1), 0
            self._free_old_pieces()
            self._give_back()

    def _free_old_pieces(self) -> None:
        for piece in self._old_pieces:
            self._texts[piece] = _NOTHING
        self._spare.extend(self._old_pieces)
        self._old_pieces = set()
        self._bytes -= self._old_bytes
        self._old_bytes = 0

    def _cut_back(self) -> None:
        # a byte of uses for each number: the last one in use is found without a loop in Python
        self._size = max(1, len(bytes(self._uses[: self._size]).rstrip(b"\0")))
        self._resize_columns(capacity_for(self._size))
        self._rebuild_table(max(FIRST_TABLE, 2 * self.count))

    def _close_holes(self) -> None:
        """Begin to compact the texts in use."""
        self._old_pieces = set(range(len(self._texts))) - set(self._spare)
        self._old_bytes = self._bytes
        self._holes = 0
        # a new piece: moving texts must not be appended to one that will be freed
        self._open_piece()
        # moving all numbers into a new table copies their texts, too
        self._rebuild_table(max(self._slots, 2 * self.count))
