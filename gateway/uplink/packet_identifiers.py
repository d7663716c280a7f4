"""The packet identifiers of what a connection to the fleet's broker has not had answered."""

LAST_PACKET_IDENTIFIER = 65_535


class PacketIdentifiers:
    """Gives out identifiers that are not in use, after the `last` one that it gave."""

    def __init__(self) -> None:
        self.last = 0
        self._in_use: set[int] = set()

    def take(self) -> int:
        """Return one that nothing without an answer has [MQTT-2.2.1-3]; it is in use from now."""
        mid = self.last % LAST_PACKET_IDENTIFIER + 1
        while mid in self._in_use:
            mid = mid % LAST_PACKET_IDENTIFIER + 1
        self.last = mid
        self._in_use.add(mid)
        return mid

    def hold(self, mid: int) -> None:
        """Take this one, which an earlier connection gave out."""
        self._in_use.add(mid)

    def release(self, mid: int) -> None:
        """Let an identifier be used again: the answer has come."""
        self._in_use.discard(mid)
