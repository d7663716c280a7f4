"""What a connection still has to send, with marks that hold bytes back until a commit."""

from collections import deque


class _Part:
    """Bytes that leave together, and how many of our Receive Maximum they give back."""

    __slots__ = ("acknowledgements", "data", "mark")

    def __init__(self, mark: int, data: bytes) -> None:
        self.mark = mark
        self.data = bytearray(data)
        self.acknowledgements = 0


class Output:
    """A queue of bytes in which each part may wait for a batch of rows to be on disk.

    Marks are batch numbers and never fall along the queue: what is appended behind bytes that
    wait keeps its order and waits with them (ARCHITECTURE.md, "The turn").
    `acknowledgements` is how many of those noted have left since the beginning.
    """

    __slots__ = ("_parts", "acknowledgements", "size")

    def __init__(self) -> None:
        self._parts: deque[_Part] = deque()
        self.size = 0
        self.acknowledgements = 0

    def append(self, data: bytes, mark: int = 0) -> None:
        """Queue `data`; it leaves once every batch up to `mark` is on disk."""
        self.size += len(data)
        if self._parts and self._parts[-1].mark >= mark:
            self._parts[-1].data.extend(data)
        else:
            self._parts.append(_Part(mark, data))

    def note_acknowledgement(self) -> None:
        """Count an acknowledgement once the bytes that were appended last have left."""
        self._parts[-1].acknowledgements += 1

    def take(self, committed: int) -> bytearray | None:
        """Remove and return the bytes that may leave now; None when there are none."""
        parts = self._parts
        if not parts or parts[0].mark > committed:
            return None
        first = parts.popleft()
        data = first.data
        self.acknowledgements += first.acknowledgements
        while parts and parts[0].mark <= committed:
            part = parts.popleft()
            data += part.data
            self.acknowledgements += part.acknowledgements
        self.size -= len(data)
        return data

    @property
    def waiting_for(self) -> int:
        """The batch that the first queued byte waits for; 0 when nothing is queued."""
        return self._parts[0].mark if self._parts else 0
