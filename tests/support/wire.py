"""What a broker writes to a client at once, in the order in which it does."""

from dataclasses import dataclass, field


@dataclass
class Wire:
    """Notes what is written to a client before the turn ends."""

    written: list[bytes] = field(default_factory=list)

    def write(self, data: bytes | bytearray, /) -> None:
        self.written.append(bytes(data))
