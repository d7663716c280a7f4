"""The encryption counter of one device, which increases with each packet."""

import logging
from hashlib import sha256

from gateway.bridges.ble.ble_settings import BleDevice
from gateway.bridges.supervision.interfaces import PacketCounters

RESTARTED = 100
"""Counters below this belong to a device that started again after a change of its battery."""

RISING = 3
"""Packets in a row with rising counters after which a device counts as restarted, even if its first
packets were missed."""

TOGETHER_MAX = 8
"""Packets with one counter: some devices split their data."""

logger = logging.getLogger(__name__)


class PacketCounter:
    """Accepts each packet of a configured device once, also across restarts of the gateway.

    Without `counter_restarts`, a device that starts counting again is ignored: its packets look
    like replayed ones. It is accepted once it has another key, exceeds the last counter, or its
    counter is forgotten (`tidegate node forget`).
    """

    def __init__(self, device: BleDevice, counters: PacketCounters) -> None:
        self._device = device
        self._key = sha256((device.encryption_key or "").lower().encode()).digest()
        self._counters = counters
        self._warned = False
        self._together: set[bytes] = set()
        """Packets accepted with the last counter."""
        self._rising: list[int] = []
        """Counters below the last one that rise from packet to packet."""

    def accept(self, counter: int, packet: bytes) -> bool:
        """Store a packet and its counter; return False if it may have been accepted before."""
        address = self._device.address
        last = self._counters.last(address, self._key)
        if counter == last:
            return self._accept_together(packet)
        if counter < last and not self._has_restarted(counter):
            self._warn(counter, last)
            return False
        if counter < last:
            logger.warning("%s: restarts its packet counter, from %d on", address, counter)
        self._counters.remember(address, self._key, counter)
        self._together = {packet}
        self._rising.clear()
        return True

    def _accept_together(self, packet: bytes) -> bool:
        """Accept another packet with the last counter, whose other packets came in this run."""
        if not self._together or packet in self._together or len(self._together) >= TOGETHER_MAX:
            return False
        self._together.add(packet)
        return True

    def _has_restarted(self, counter: int) -> bool:
        if not self._device.counter_restarts:
            return False
        if self._rising and counter <= self._rising[-1]:
            self._rising.clear()
        self._rising.append(counter)
        return counter < RESTARTED or len(self._rising) >= RISING

    def _warn(self, counter: int, last: int) -> None:
        if not self._warned:
            logger.warning(
                "%s: a packet with the counter %d after %d is dropped: it was sent again, or the"
                " device counts from the start (tidegate docs bridges BLE)",
                self._device.address,
                counter,
                last,
            )
        self._warned = True
