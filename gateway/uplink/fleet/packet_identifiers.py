"""The packet identifiers in use on a connection to the fleet's broker."""

LAST_PACKET_IDENTIFIER = 65_535


class PacketIdentifiers:
    """Assigns identifiers that are not in use, upwards from `last`."""

    def __init__(self) -> None:
        self.last = 0
        self.in_use: set[int] = set()

    def next(self) -> int:
        """Return an unused identifier [MQTT-2.2.1-3] and mark it as used."""
        mid = self.last % LAST_PACKET_IDENTIFIER + 1
        while mid in self.in_use:
            mid = mid % LAST_PACKET_IDENTIFIER + 1
        self.last = mid
        self.in_use.add(mid)
        return mid

    def hold(self, mid: int) -> None:
        """Mark an identifier of an earlier connection as used."""
        self.in_use.add(mid)

    def release(self, mid: int) -> None:
        """Free an identifier after its answer."""
        self.in_use.discard(mid)
