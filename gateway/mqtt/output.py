"""What a connection still has to send, and what holds its bytes back until it is safe."""

from collections.abc import Callable
from typing import Protocol


class Pledge:
    """What an answer waits for: its batch on disk, or everyone's acknowledgement before that.

    `batch` is the batch that writes what is owed, `outstanding` how many receivers have it and
    have not acknowledged it. Whoever gives the message away calls `add()` for each of them before
    the answer is queued, and `settle()` once for each that acknowledged it or is owed it no more.
    `on_settled` is called when the last has; the connection that queues the answer sets it.
    """

    __slots__ = ("batch", "on_settled", "outstanding")

    def __init__(self, batch: int) -> None:
        self.batch = batch
        self.outstanding = 0
        self.on_settled: Callable[[], None] | None = None

    def add(self) -> None:
        """Owe the message to one receiver more."""
        self.outstanding += 1

    def settle(self) -> None:
        """Owe it to one receiver less."""
        self.outstanding -= 1
        if not self.outstanding and self.on_settled is not None:
            self.on_settled()


class Writing(Protocol):
    """What bytes are given to that leave without waiting for the turn's end."""

    def write(self, data: bytes | bytearray, /) -> None:
        """Send them, or keep what the peer does not take yet."""
        ...


class _Part:
    """Bytes that leave together, and how many of our Receive Maximum they give back."""

    __slots__ = ("acknowledgements", "data", "mark", "pledge")

    def __init__(self, mark: int, data: bytes | bytearray, pledge: Pledge | None) -> None:
        self.mark = mark
        self.data = data if type(data) is bytearray else bytearray(data)  # more may be added
        self.pledge = pledge
        self.acknowledgements = 0

    def held(self, committed: int) -> bool:
        """Return True while the bytes may not leave."""
        return self.mark > committed and (self.pledge is None or self.pledge.outstanding > 0)

    def covers(self, mark: int, pledge: Pledge | None) -> bool:
        """Return True if what waits for `mark` or `pledge` may leave whenever this part may."""
        return not mark or (mark <= self.mark and (self.pledge is None or self.pledge is pledge))


class Output:
    """A queue of bytes in which each part may wait for a batch of rows to be on disk.

    Marks are batch numbers and never fall along the queue: what is appended behind bytes that
    wait keeps its order and waits with them (ARCHITECTURE.md, "The turn").
    `acknowledgements` is how many of those noted have left since the beginning. `transport` may be
    written to at once while nothing is queued, unless it is None.
    """

    __slots__ = ("_alone", "_noted", "_parts", "acknowledgements", "size", "transport")

    def __init__(self) -> None:
        self._alone: bytes | bytearray | None = None  # all that is queued, if it came at once
        self._noted = 0  # acknowledgements in it
        self._parts: list[_Part] | None = None  # None while nothing else is queued
        self.size = 0
        self.acknowledgements = 0
        self.transport: Writing | None = None

    def append(self, data: bytes | bytearray, mark: int = 0, pledge: Pledge | None = None) -> None:
        """Queue `data`; it leaves once every batch up to `mark` is on disk.

        With a `pledge` it also leaves, in its place of the queue, when that has nothing
        outstanding any more. A bytearray belongs to the output from now on; bytes, which many
        receivers may share, are not copied for one that has nothing else to send.
        """
        if pledge is not None and not pledge.outstanding:
            mark = 0
        if not self.size and not mark:
            self._alone = data
            self.size = len(data)
            return
        self.size += len(data)
        parts = self._among_parts()
        if parts:
            last = parts[-1]
            if last.covers(mark, pledge):
                last.data += data
                return
        parts.append(_Part(mark, data, pledge))

    def leave_at_once(self, data: bytes | bytearray) -> bool:
        """Send bytes that wait for nothing; return False if they have to be queued."""
        if self.size or self.transport is None:
            return False
        self.transport.write(data)
        return True

    def _among_parts(self) -> list[_Part]:
        """Return the parts, what was alone among them."""
        parts = self._parts
        if parts is None:
            self._parts = parts = []
        if self._alone is not None:
            part = _Part(0, self._alone, None)
            part.acknowledgements, self._noted = self._noted, 0
            parts.append(part)
            self._alone = None
        return parts

    def note_acknowledgements(self, count: int) -> None:
        """Count acknowledgements once the bytes that were appended last have left."""
        if not self.size:
            self.acknowledgements += count
        elif self._parts is None:
            self._noted += count
        else:
            last = self._parts[-1]
            last.acknowledgements += count

    def take(self, committed: int) -> bytes | bytearray | None:
        """Remove and return the bytes that may leave now; None when there are none.

        A bytearray belongs to the caller.
        """
        alone = self._alone
        if alone is not None:
            self._alone = None
            self.acknowledgements += self._noted
            self.size = self._noted = 0
            return alone
        parts = self._parts
        if parts is None:
            return None
        free = 0
        for part in parts:
            if part.held(committed):
                break
            self.acknowledgements += part.acknowledgements
            free += 1
        if not free:
            return None
        first = parts[0]
        data = first.data
        for part in parts[1:free]:
            data += part.data
        if free == len(parts):
            self._parts = None
        else:
            del parts[:free]
        self.size -= len(data)
        return data

    @property
    def waiting_for(self) -> int:
        """The batch that the first queued byte waits for; 0 when nothing is queued."""
        return 0 if self._parts is None else self._parts[0].mark
