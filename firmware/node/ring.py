"""A queue of byte strings in one block of memory; each is kept as its difference to the one before.

A node's samples resemble each other: of 44 bytes of a sample of three quantities some 4 change.
Once the queue is made `append` takes no memory, and `pop` only for what it returns.
"""

from . import const

_BODY_MAX = const(320)
"""Bytes of one entry; the readings of a frame need less."""

SIZE_MIN = 2 + _BODY_MAX
"""Bytes of memory into which any one entry fits."""

_STEP = const(15)
"""A step of so many bytes to the next one that changed, which is still further away."""

_WHOLE = const(0x80)
"""Bit of an entry's first byte: its size and all of it follow, not what changed."""

_SAME = const(0x40)
"""Bit of a head for up to 63 entries in a row in which the same bytes changed as in the one before:
it counts them, and only the bytes follow."""

_SAME_MAX = const(0x7F)
_STEPS_MAX = const(0x3F)

_PLACES_MAX = const(16)
"""Changed bytes of an entry whose places are remembered for the next one."""


class Places:
    """Where an entry differs from the one before it: `count` positions in `at`, rising."""

    def __init__(self) -> None:
        self.at = bytearray(_PLACES_MAX)
        self.count = 0
        self._good = True

    def clear(self) -> None:
        """Begin again."""
        self.count = 0
        self._good = True

    def add(self, position: int) -> None:
        """Remember one more; none is known once there are too many, or one is too far away."""
        self._good = self._good and self.count < _PLACES_MAX and position <= 0xFF
        if self._good:
            self.at[self.count] = position
            self.count += 1
        else:
            self.count = 0

    def has(self, position: int) -> bool:
        """Return whether the position is among them."""
        for number in range(self.count):  # noqa: SIM110 - any() takes memory for a generator
            if self.at[number] == position:
                return True
        return False


class Ring:
    """Holds entries in `size` bytes, all taken at the start.

    ValueError for fewer than SIZE_MIN bytes.

    An entry is one byte with its number of steps, the steps, two a byte, and the bytes that
    changed. A step says how many bytes stay as they were before the next one that changed.
    """

    def __init__(self, size: int) -> None:
        if size < SIZE_MIN:
            raise ValueError("a buffer of %d bytes: at least %d" % (size, SIZE_MIN))
        self._memory = bytearray(size)
        self._start = 0
        self._used = 0
        self._count = 0
        self._first = bytearray(_BODY_MAX)  # what the oldest entry is the difference to
        self._first_size = 0
        self._last = bytearray(_BODY_MAX)
        self._last_size = 0
        self._run = -1  # where the head stands that counts the newest entries, if one does
        self._run_left = 0  # entries of the run that is taken out
        self._first_places = Places()
        self._last_places = Places()
        self._steps = self._changed = 0  # from the last entry to the next one
        self._known = False  # whether all that changed is where the last entry had its changes

    def __len__(self) -> int:
        """Return the number of entries."""
        return self._count

    def append(self, body: bytes) -> bool:
        """Keep an entry; return False, and keep nothing, where there is no room for it.

        ValueError beyond _BODY_MAX bytes.
        """
        size = len(body)
        if size > _BODY_MAX:
            raise ValueError("an entry of %d bytes: at most %d" % (size, _BODY_MAX))
        self._measure(body)
        steps = self._steps
        whole = size != self._last_size or steps > _STEPS_MAX
        needed = 2 + size if whole else 1 + (steps + 1) // 2 + self._changed
        same = not whole and self._known and 1 + self._last_places.count <= needed
        grows = same and self._run >= 0 and self._memory[self._run] < _SAME_MAX
        if same:
            needed = self._last_places.count + (not grows)
        if self._used + needed > len(self._memory):
            return False
        if same:
            self._put_same(body, grows)
        elif whole:
            self._put_whole(body)
        else:
            self._put_changes(body, steps)
        for position in range(size):
            self._last[position] = body[position]
        self._last_size = size
        self._used += needed
        self._count += 1
        return True

    def pop(self) -> bytes:
        """Remove and return the oldest entry; IndexError when there is none."""
        if not self._count:
            raise IndexError("the buffer is empty")
        self._count -= 1
        if not self._run_left:
            self._take_head(self._get(0))
        if self._run_left:
            self._run_left -= 1
            for number in range(self._first_places.count):
                self._first[self._first_places.at[number]] = self._get(number)
            self._drop(self._first_places.count)
        return bytes(memoryview(self._first)[: self._first_size])

    def _take_head(self, head: int) -> None:
        """Bring the first entry forward, or learn how many have the same places."""
        if head & _WHOLE:
            self._first_size = (head & ~_WHOLE) << 8 | self._get(1)
            for position in range(self._first_size):
                self._first[position] = self._get(2 + position)
            self._drop(2 + self._first_size)
            self._first_places.clear()
        elif head & _SAME:
            if self._run == self._start:
                self._run = -1  # it cannot grow any more
            self._run_left = head & ~_SAME
            self._drop(1)
        else:
            self._drop(self._take_changes(head))

    def _measure(self, body: bytes) -> None:
        """Find what leads from the last entry to this one; returning it would take memory."""
        steps = changed = before = 0
        known = self._last_places.count > 0
        for position in range(min(len(body), self._last_size)):
            if body[position] != self._last[position]:
                steps += 1 + (position - before) // _STEP
                changed += 1
                before = position + 1
                known = known and self._last_places.has(position)
        self._steps = steps
        self._changed = changed
        self._known = known

    def _put_same(self, body: bytes, grows: bool) -> None:
        if grows:
            self._memory[self._run] += 1
        else:
            self._run = (self._start + self._used) % len(self._memory)
            self._put(0, _SAME + 1)
        for number in range(self._last_places.count):
            self._put(number + (not grows), body[self._last_places.at[number]])

    def _put_whole(self, body: bytes) -> None:
        self._run = -1
        size = len(body)
        self._put(0, _WHOLE | size >> 8)
        self._put(1, size & 0xFF)
        for position in range(size):
            self._put(2 + position, body[position])
        self._last_places.clear()

    def _put_changes(self, body: bytes, steps: int) -> None:
        self._run = -1
        self._put(0, steps)
        self._last_places.clear()
        step = before = 0
        value = 1 + (steps + 1) // 2
        for position in range(len(body)):
            if body[position] != self._last[position]:
                for _ in range((position - before) // _STEP):
                    self._put_step(step, _STEP)
                    step += 1
                self._put_step(step, (position - before) % _STEP)
                step += 1
                self._put(value, body[position])
                self._last_places.add(position)
                value += 1
                before = position + 1

    def _take_changes(self, steps: int) -> int:
        """Bring the first entry forward; return how many bytes that took."""
        position, value = 0, 1 + (steps + 1) // 2
        self._first_places.clear()
        for step in range(steps):
            distance = self._get(1 + step // 2) >> 4 * (step & 1) & 0x0F
            position += distance
            if distance < _STEP:
                self._first[position] = self._get(value)
                self._first_places.add(position)
                value += 1
                position += 1
        return value

    def _put_step(self, step: int, distance: int) -> None:
        offset = 1 + step // 2
        self._put(offset, self._get_ahead(offset) | distance << 4 if step & 1 else distance)

    def _put(self, offset: int, byte: int) -> None:
        self._memory[(self._start + self._used + offset) % len(self._memory)] = byte

    def _get_ahead(self, offset: int) -> int:
        return self._memory[(self._start + self._used + offset) % len(self._memory)]

    def _get(self, offset: int) -> int:
        return self._memory[(self._start + offset) % len(self._memory)]

    def _drop(self, size: int) -> None:
        self._start = (self._start + size) % len(self._memory)
        self._used -= size
