"""What a connection still has to send, with marks that hold bytes back until a commit."""

from collections import deque


class Output:
    """A queue of bytes in which each part may wait for a batch of rows to be on disk.

    Marks are batch numbers and never fall along the queue: what is appended behind bytes that
    wait keeps its order and waits with them (design, section 2, "The turn").
    """

    __slots__ = ("_parts", "size")

    def __init__(self) -> None:
        self._parts: deque[tuple[int, bytearray]] = deque()
        self.size = 0

    def append(self, data: bytes, mark: int = 0) -> None:
        """Queue `data`; it leaves once every batch up to `mark` is on disk."""
        self.size += len(data)
        if self._parts and self._parts[-1][0] >= mark:
            self._parts[-1][1].extend(data)
        else:
            self._parts.append((mark, bytearray(data)))

    def take(self, committed: int) -> bytearray | None:
        """Remove and return the bytes that may leave now; None when there are none."""
        parts = self._parts
        if not parts or parts[0][0] > committed:
            return None
        data = parts.popleft()[1]
        while parts and parts[0][0] <= committed:
            data += parts.popleft()[1]
        self.size -= len(data)
        return data

    @property
    def waiting_for(self) -> int:
        """The batch that the first queued byte waits for; 0 when nothing is queued."""
        return self._parts[0][0] if self._parts else 0
