"""The encryption counter of one device, of which each packet has a higher one than the last."""

import logging
from hashlib import sha256

from gateway.bridges.ble.ble_settings import BleDevice
from gateway.bridges.supervision.interfaces import PacketCounters

RESTARTED = 100
"""Counters below it are those of a device that counts anew, after its battery was changed."""

RISING = 3
"""Packets in a row with rising counters that show the same of a device that was not heard while it
had those."""

TOGETHER_MAX = 8
"""Packets of one counter: some devices split what they say."""

logger = logging.getLogger(__name__)


class PacketCounter:
    """Takes each packet of a listed device once, whatever restarts of the gateway lie between.

    Without `counter_restarts` a device that counts anew is not heard until it has another key, is
    above the last counter, or its counter is forgotten (`tidegate node forget`): nobody can tell
    its packets from old ones that are sent again.
    """

    def __init__(self, device: BleDevice, counters: PacketCounters) -> None:
        self._device = device
        self._key = sha256((device.encryption_key or "").lower().encode()).digest()
        self._counters = counters
        self._warned = False
        self._together: set[bytes] = set()
        """Packets that were taken with the last counter."""
        self._rising: list[int] = []
        """Counters below the last one that rise from packet to packet."""

    def accept(self, counter: int, packet: bytes) -> bool:
        """Remember a packet and its counter; return False if it may have been taken before."""
        address = self._device.address
        last = self._counters.last(address, self._key)
        if counter == last:
            return self._accept_together(packet)
        if counter < last and not self._has_restarted(counter):
            self._warn(counter, last)
            return False
        if counter < last:
            logger.warning("%s: counts its packets anew, from %d on", address, counter)
        self._counters.remember(address, self._key, counter)
        self._together = {packet}
        self._rising.clear()
        self._warned = False
        return True

    def _accept_together(self, packet: bytes) -> bool:
        """Take another packet of the last counter, whose others this run has taken."""
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
                " device counts anew (give it another key, set counter_restarts, or have its"
                " counter forgotten: tidegate node forget)",
                self._device.address,
                counter,
                last,
            )
        self._warned = True
