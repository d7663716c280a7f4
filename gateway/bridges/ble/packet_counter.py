"""The encryption counter of one device, of which each packet has a higher one than the last."""

import logging
from hashlib import sha256

from gateway.bridges.ble.ble_settings import BleDevice
from gateway.bridges.supervision.interfaces import PacketCounters

RESTARTED = 100
"""Counters below it are those of a device that counts anew, after its battery was changed."""

logger = logging.getLogger(__name__)


class PacketCounter:
    """Takes each counter of a listed device once, whatever restarts of the gateway lie between.

    Without `counter_restarts` a device that counts anew is not heard until it has another key or is
    above the last counter: nobody can tell its packets from old ones that are sent again.
    """

    def __init__(self, device: BleDevice, counters: PacketCounters) -> None:
        self._device = device
        self._key = sha256((device.encryption_key or "").lower().encode()).digest()
        self._counters = counters
        self._told = False

    def take(self, counter: int) -> bool:
        """Remember a counter; return False if it may have been taken before."""
        address = self._device.address
        last = self._counters.last(address, self._key)
        restarted = self._device.counter_restarts and counter < RESTARTED and counter != last
        if counter <= last and not restarted:
            if counter < RESTARTED and counter != last:
                self._tell(counter, last)
            return False
        self._counters.remember(address, self._key, counter)
        return True

    def _tell(self, counter: int, last: int) -> None:
        if not self._told:
            logger.warning(
                "%s: a packet with the counter %d after %d is dropped: it was sent again, or the"
                " device counts anew (give it another key, or set counter_restarts)",
                self._device.address,
                counter,
                last,
            )
        self._told = True
