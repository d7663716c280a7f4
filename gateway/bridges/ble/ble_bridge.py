"""Bluetooth Low Energy to readings: advertisements of all around, and values of listed devices."""

import asyncio
import logging
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gateway.bridges.ble.ble_settings import BleDevice, BleSettings
from gateway.bridges.ble.decoders import (
    Advertisement,
    BThome,
    Decoder,
    Decoders,
    UndecodableError,
)
from gateway.bridges.ble.gatt import GattReader
from gateway.bridges.ble.ladder import Ladder
from gateway.bridges.ble.packet_counter import PacketCounter
from gateway.bridges.ble.scan import Scan
from gateway.bridges.kind import BridgeKind
from gateway.bridges.supervision.errors import BridgeError
from gateway.bridges.supervision.host import Host

if TYPE_CHECKING:
    from bleak.backends.device import BLEDevice
    from bleak.backends.scanner import AdvertisementData

logger = logging.getLogger(__name__)

HEARD_MAX = 500
"""Devices that are not listed of which something is remembered; the one that was silent the longest
makes room. Of those that are listed all is: whoever makes addresses up could have their counters
forgotten, and what they encrypted taken again."""

LOOK_EVERY = 0.25
"""Part of the stall time after which it is looked for."""


@dataclass(slots=True)
class Heard:
    """What is remembered of one device."""

    decoders: list[Decoder]
    taken: float = float("-inf")


class BleBridge:
    """Scans, decodes what it may, and climbs the ladder when nothing comes any more."""

    def __init__(self, settings: BleSettings, host: Host) -> None:
        self._settings = settings
        self._host = host
        self._listed = {each.address: each for each in settings.device}
        self._decoders = Decoders()
        self._heard: OrderedDict[str, Heard] = OrderedDict()
        self._heard_listed: dict[str, Heard] = {}
        self._scan = Scan(settings.adapter, settings.scanning, self._on_advertisement)
        self._readers = {
            each.address: GattReader(each, settings.adapter, host)
            for each in settings.device
            if each.characteristic
        }
        self._ladder = Ladder(settings.stall, self._now)

    async def run(self) -> None:
        """Scan until the adapter is lost, for which BridgeError is raised."""
        self._ladder.heard(self._now)
        await self._scan.start()
        self._host.working()
        try:
            async with asyncio.TaskGroup() as tasks:
                for reader in self._readers.values():
                    tasks.create_task(reader.run())
                tasks.create_task(self._watch())
        except* BridgeError as failures:
            raise failures.exceptions[0] from None
        finally:
            await self._stop()

    async def _stop(self) -> None:
        try:
            await self._scan.stop()
        except BridgeError as failure:  # BlueZ is gone, and the scan with it
            logger.debug("%s: %s", self._host.title, failure)

    @property
    def _now(self) -> float:
        return self._host.services.clock.monotonic()

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(self._settings.stall * LOOK_EVERY)
            match self._ladder.next(self._now):
                case "restart the scan":
                    self._host.count("scan_restarts")
                    await self._restart(power=False)
                case "power-cycle the adapter":
                    self._host.count("power_cycles")
                    await self._restart(power=True)
                case "alarm":
                    self._host.silent(
                        f"no advertisement, although the scan was started again and"
                        f" {self._settings.adapter} was without power"
                    )

    async def _restart(self, *, power: bool) -> None:
        await self._scan.stop()
        if power:
            await self._scan.cycle_power()
        await self._scan.start()

    def _on_advertisement(self, device: "BLEDevice", data: "AdvertisementData") -> None:
        self._ladder.heard(self._now)
        self._host.heard()
        self._host.count("advertisements")
        reader = self._readers.get(device.address.upper())
        if reader is not None:
            reader.seen(device)
        self.take(
            Advertisement(
                device.address.upper(),
                data.local_name or device.name,
                data.rssi,
                dict(data.service_data),
                dict(data.manufacturer_data),
                list(data.service_uuids),
                self._now,
            )
        )

    def take(self, advertisement: Advertisement) -> None:
        """Publish what an advertisement says, if it may be heard and is not too soon."""
        listed = self._listed.get(advertisement.address)
        if listed is None and self._settings.accept == "listed":
            self._host.count("not_listed")
            return
        if advertisement.rssi < self._settings.rssi:
            self._host.count("too_weak")
            return
        heard = self._remember(advertisement.address, listed)
        if advertisement.time - heard.taken < self._settings.interval:
            self._host.count("too_soon")
            return
        if self._decode(heard, advertisement, listed):
            heard.taken = advertisement.time

    def _decode(self, heard: Heard, advertisement: Advertisement, listed: BleDevice | None) -> bool:
        node = listed.node if listed is not None else None
        node = node or advertisement.address.replace(":", "").lower()
        for decoder in heard.decoders:
            try:
                found = decoder.decode(advertisement)
            except UndecodableError as failure:
                self._host.count(failure.counter)
                return False
            if found is not None:
                for quantity, value, unit in found:
                    self._host.read(node, quantity, value, unit, lossy=True)
                return bool(found)
        self._host.count("not_decoded")
        return False

    def _remember(self, address: str, listed: BleDevice | None) -> Heard:
        if listed is not None:
            heard = self._heard_listed.get(address)
            if heard is None:
                heard = self._heard_listed[address] = Heard(self._decoders_of(listed))
            return heard
        heard = self._heard.get(address)
        if heard is None:
            if len(self._heard) >= HEARD_MAX:
                self._heard.popitem(last=False)
                self._host.count("forgotten")
            heard = self._heard[address] = Heard(self._decoders.of_device(None))
        self._heard.move_to_end(address)
        return heard

    def _decoders_of(self, device: BleDevice) -> list[Decoder]:
        """Return decoders with the device's key, and with the counter of what it encrypts."""
        key = bytes.fromhex(device.encryption_key) if device.encryption_key else None
        decoders = self._decoders.of_device(key)
        for each in decoders:
            if isinstance(each, BThome):
                each.take = PacketCounter(device, self._host.services.packet_counters).take
        return decoders


KIND = BridgeKind(
    name="ble",
    summary="Bluetooth Low Energy: what sensors advertise, and what can be read from them",
    settings=BleSettings,
    make=BleBridge,
    needs=("bleak", "bthome_ble"),
    requirement="tidegate[ble]",
    counters={
        "advertisements": "Advertisements heard.",
        "not_listed": "Advertisements of devices that are not listed.",
        "too_weak": "Advertisements with too weak a signal.",
        "too_soon": "Advertisements too soon after the one before.",
        "not_decoded": "Advertisements that no decoder knows.",
        "malformed": "Advertisements that a decoder tripped over.",
        "duplicates": "Packets that were repeated, or replayed with an old counter.",
        "undecrypted": "Encrypted packets without the right key.",
        "downgrades": "Packets without encryption of a device that has a key.",
        "forgotten": "Devices forgotten because there are too many.",
        "gatt_values": "Values read from devices or notified by them.",
        "invalid": "Values that mean that the device has none.",
        "gatt_failures": "Connections that failed or were lost, and values that were not given.",
        "scan_restarts": "Scans started again because nothing came.",
        "power_cycles": "Times that the adapter was without power because nothing came.",
    },
    default_name=lambda settings: settings.adapter,
)
