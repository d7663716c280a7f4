"""Finds devices: listens to advertisements for a while, and decodes those that need no key."""

import asyncio
import time
from typing import TYPE_CHECKING

from gateway.bridges.ble.ble_settings import node_of
from gateway.bridges.ble.decoders import (
    Advertisement,
    DecodedValue,
    Decoder,
    Decoders,
    UndecodableError,
    decode,
)
from gateway.bridges.ble.scan import Scan
from gateway.bridges.kind import FoundTable, ScanOptions
from gateway.bridges.supervision.interfaces import BridgeError

if TYPE_CHECKING:
    from bleak.backends.device import BLEDevice
    from bleak.backends.scanner import AdvertisementData

SECONDS = 15.0
"""Seconds to listen: most sensors advertise several times in it."""

ADAPTER = "hci0"

DEVICES_MAX = 200
"""Devices that are remembered; the first ones."""

NEEDS_KEY = ("undecrypted", "downgrades")


class Air:
    """The advertisements of each device."""

    def __init__(self) -> None:
        self._decoders = Decoders()
        self._of_device: dict[str, list[Decoder]] = {}
        self.names: dict[str, str] = {}
        self.strength: dict[str, int] = {}
        self.values: dict[str, dict[str, DecodedValue]] = {}
        """By address and the name of the series."""
        self.encrypted: set[str] = set()

    def add(self, advertisement: Advertisement) -> None:
        """Add an advertisement; beyond DEVICES_MAX those of further devices are ignored."""
        address = advertisement.address
        if address not in self._of_device:
            if len(self._of_device) == DEVICES_MAX:
                return
            self._of_device[address] = self._decoders.of_device(None)
        self.strength[address] = advertisement.rssi
        if advertisement.name:
            self.names[address] = advertisement.name
        try:
            found = decode(self._of_device[address], advertisement)
        except UndecodableError as failure:
            if failure.counter in NEEDS_KEY:
                self.encrypted.add(address)
            return
        for each in found or ():
            self.values.setdefault(address, {})[f"{each.quantity}/{each.instance}"] = each

    @property
    def others(self) -> int:
        """The number of devices that could not be decoded."""
        return len(self._of_device.keys() - self.values.keys() - self.encrypted)


async def scan_devices(options: ScanOptions) -> list[FoundTable]:
    """Return a table for the adapter, and one for each device that can be decoded or needs a key.

    The strongest come first. A place is an adapter.
    """
    found: list[FoundTable] = []
    for adapter in options.places or (ADAPTER,):
        air = Air()
        seconds = options.seconds or SECONDS
        options.report(f"{adapter}: listening for {seconds:g} s")
        scan = Scan(adapter, "active", lambda *fields, air=air: air.add(_advertisement(*fields)))
        try:
            await scan.start()
            await asyncio.sleep(seconds)
            await scan.stop()
        except BridgeError as failure:
            options.report(f"{adapter}: {failure}")
            continue
        options.report(f"{adapter}: {air.others} devices advertise nothing that can be decoded")
        devices = [_table(air, address) for address in _ordered(air)]
        if devices:
            found += [FoundTable("ble", {"adapter": adapter}), *devices]
    return found


def _ordered(air: Air) -> list[str]:
    return sorted(air.values.keys() | air.encrypted, key=lambda each: -air.strength[each])


def _table(air: Air, address: str) -> FoundTable:
    name = air.names.get(address, "no name")
    comments = [f"{name}, {air.strength[address]} dBm"]
    if address in air.encrypted:
        comments.append('encrypted: add key = "32 hexadecimal digits", as its app shows it')
    values = air.values.get(address, {}).values()
    if values:
        comments.append(
            ", ".join(
                " ".join(filter(None, (each.quantity, str(each.value), each.unit)))
                for each in values
            )
        )
    return FoundTable("ble.device", {"address": address, "node": node_of(address)}, tuple(comments))


def _advertisement(device: "BLEDevice", data: "AdvertisementData") -> Advertisement:
    return Advertisement(
        device.address.upper(),
        data.local_name or device.name,
        data.rssi,
        dict(data.service_data),
        dict(data.manufacturer_data),
        list(data.service_uuids),
        time.monotonic(),
    )
