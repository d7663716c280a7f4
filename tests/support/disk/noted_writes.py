"""A stream that notes in which pieces it was written to."""

import io


class NotedWrites(io.StringIO):
    """Notes each write."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[str] = []

    def write(self, text: str) -> int:
        self.writes.append(text)
        return len(text)
