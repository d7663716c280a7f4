"""Bluetooth Low Energy to readings: advertisements in range, and values of configured devices."""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING

from gateway.bridges.ble.ble_settings import BleDevice, BleSettings, node_of
from gateway.bridges.ble.decoders import (
    Advertisement,
    BThome,
    DecodedValue,
    Decoder,
    Decoders,
    Shape,
    UndecodableError,
    decode,
)
from gateway.bridges.ble.gatt import GattReader
from gateway.bridges.ble.scan import Scan
from gateway.bridges.kind import BridgeKind, FoundTable, ScanOptions
from gateway.bridges.readings.reading import Value, series_topic
from gateway.bridges.supervision.host import Host
from gateway.bridges.supervision.interfaces import BridgeError, PacketCounters

if TYPE_CHECKING:
    from bleak.backends.device import BLEDevice
    from bleak.backends.scanner import AdvertisementData


logger = logging.getLogger(__name__)

RECEIVED_MAX = 500
"""Unconfigured devices that are remembered; the one silent for longest is dropped first. Configured
devices are all remembered: otherwise made-up addresses could push out their counters, and old
encrypted packets would be accepted again."""

AGAIN = 4.0
"""Seconds within which the same bytes are the same event, as for BTHome's packet numbers."""

MISSES_MAX = 100
"""Unknown advertisements of a device in a row, after which only one in so many of the same shape is
tried: each try takes some 20 µs for each parser."""

SHAPES_MAX = 16
"""Shapes of a device's advertisements for which these are counted."""

CHECK_EVERY = 0.25
"""Fraction of the stall time after which the bridge checks for a stall."""

RESTARTED = 100
"""Counters below this belong to a device that started again after a change of its battery."""

RISING = 3
"""Packets in a row with rising counters after which a device counts as restarted, even if its first
packets were missed."""

TOGETHER_MAX = 8
"""Packets with one counter: some devices split their data."""

STEPS = ("restart the scan", "power-cycle the adapter", "alarm")


class StallSteps:
    """Returns a step after each `patience` seconds of silence; after the last step the first again.

    Each further round waits twice as long between steps as the round before.
    """

    def __init__(self, patience: float, now: float) -> None:
        self._patience = patience
        self._wait = patience
        self._since = now
        self._step = 0

    def received(self, now: float) -> None:
        """Start again at the first step: an advertisement arrived."""
        self._since, self._step, self._wait = now, 0, self._patience

    def next(self, now: float) -> str | None:
        """Return the step that is due, None while it is too soon."""
        if now - self._since < self._wait:
            return None
        step = STEPS[self._step]
        self._since = now
        self._step += 1
        if self._step == len(STEPS):
            self._step, self._wait = 0, self._wait * 2
        return step


class PacketCounter:
    """The encryption counter of one device, which increases with each packet.

    It accepts each packet of a configured device once, also across restarts of the gateway.

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


@dataclass(slots=True)
class Received:
    """The state of one device."""

    decoders: list[Decoder]
    published_at: float = float("-inf")
    content: tuple[object, ...] = ()
    time: float = float("-inf")
    """The last advertisement and its time: devices repeat themselves."""
    misses: dict[Shape, int] = field(default_factory=dict)
    """Advertisements that no decoder knew, by their shape."""
    states: dict[tuple[str, str], Value] = field(default_factory=dict)
    """The last binary states, by quantity and instance."""


class BleBridge:
    """Scans, decodes the allowed advertisements, and recovers a scan that has stalled."""

    def __init__(self, settings: BleSettings, host: Host) -> None:
        self._settings = settings
        self._host = host
        self._listed = {each.address: each for each in settings.device}
        nodes = [each.node_name for each in settings.device]
        self._shared = {each for each in nodes if nodes.count(each) > 1}
        for each in nodes:
            host.services.strangers.discard(each)
        self._decoders = Decoders()
        self._received: OrderedDict[str, Received] = OrderedDict()
        self._received_listed: dict[str, Received] = {}
        self._scan = Scan(settings.adapter, settings.scanning, self._on_advertisement)
        self._readers = {
            each.address: GattReader(each, settings.adapter, host)
            for each in settings.device
            if each.characteristic
        }
        self._stall_steps = StallSteps(settings.stall, self._now)
        host.at_forget(self._forget)

    async def run(self) -> None:
        """Scan until the adapter is lost, then raise BridgeError."""
        self._stall_steps.received(self._now)
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

    def _forget(self, node: str) -> int:
        """Forget the packet counters of a node's devices, which then start again."""
        listed = [each for each in self._settings.device if each.node_name == node]
        for each in listed:
            self._received_listed.pop(each.address, None)
        return sum(self._host.services.packet_counters.forget(each.address) for each in listed)

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
            await asyncio.sleep(self._settings.stall * CHECK_EVERY)
            match self._stall_steps.next(self._now):
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
        self._stall_steps.received(self._now)
        self._host.received()
        self._host.count("advertisements")
        reader = self._readers.get(device.address.upper())
        if reader is not None:
            reader.seen(device)
        self.on_advertisement(
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

    def on_advertisement(self, advertisement: Advertisement) -> None:
        """Publish an advertisement's values if the device is allowed and it is not too soon."""
        listed = self._listed.get(advertisement.address)
        if listed is None and self._settings.accept == "listed":
            self._host.count("not_listed")
            return
        if advertisement.rssi < self._settings.rssi:
            self._host.count("too_weak")
            return
        received = self._remember(advertisement.address, listed)
        content = (advertisement.service_data, advertisement.manufacturer_data)
        again = content == received.content and advertisement.time - received.time <= AGAIN
        is_new, received.content, received.time = not again, content, advertisement.time
        too_soon = advertisement.time - received.published_at < self._settings.interval
        if too_soon and not is_new:
            self._host.count("too_soon")
            return
        found = self._decode(received, advertisement)
        if found is None:
            return
        if too_soon:
            found = [each for each in found if _is_news(received, each)]
            if not found:
                self._host.count("too_soon")
        elif found:
            received.published_at = advertisement.time
        self._publish(
            received, [each for each in found if is_new or not each.is_event], advertisement
        )

    def _publish(
        self, received: Received, found: list[DecodedValue], advertisement: Advertisement
    ) -> None:
        listed = self._listed.get(advertisement.address)
        node = listed.node_name if listed is not None else node_of(advertisement.address)
        own = (listed.instance or "") if listed is not None else ""
        if listed is None and found:
            self._host.services.strangers.add(node)
        for each in found:
            if isinstance(each.value, bool):
                received.states[each.quantity, each.instance] = each.value
            self._host.read(
                *(node, each.quantity, each.value, each.unit),
                instance="-".join(filter(None, (own, each.instance))),
                source=node_of(advertisement.address) if node in self._shared else "",
                lossy=True,
            )

    def _decode(
        self, received: Received, advertisement: Advertisement
    ) -> list[DecodedValue] | None:
        """Return the values, None where there are none; the reason is counted."""
        misses = received.misses.get(advertisement.shape, 0)
        found = None
        if misses < MISSES_MAX or misses % MISSES_MAX == 0:
            try:
                found = decode(received.decoders, advertisement)
            except UndecodableError as failure:
                self._host.count(failure.counter)
                self._show_trouble(advertisement.address, failure.counter)
                return None
        if found is not None:
            received.misses.pop(advertisement.shape, None)
            self._show_trouble(advertisement.address, "")
            return found
        if misses or len(received.misses) < SHAPES_MAX:
            received.misses[advertisement.shape] = misses + 1
        self._host.count("not_decoded")
        return None

    def _show_trouble(self, address: str, counter: str) -> None:
        """Report why a configured device cannot be decoded; repeated packets are not reported."""
        listed = self._listed.get(address)
        if listed is not None and counter != "duplicates":
            self._host.trouble(listed.node_name, KIND.counters.get(counter, ""))

    def _remember(self, address: str, listed: BleDevice | None) -> Received:
        if listed is not None:
            received = self._received_listed.get(address)
            if received is None:
                received = self._received_listed[address] = Received(self._decoders_of(listed))
            return received
        received = self._received.get(address)
        if received is None:
            if len(self._received) >= RECEIVED_MAX:
                gone, _ = self._received.popitem(last=False)
                self._host.services.strangers.discard(node_of(gone))
                self._host.count("forgotten")
            received = self._received[address] = Received(self._decoders.of_device(None))
        self._received.move_to_end(address)
        return received

    def _decoders_of(self, device: BleDevice) -> list[Decoder]:
        """Return decoders with the device's key, and with its stored packet counter."""
        key = bytes.fromhex(device.encryption_key) if device.encryption_key else None
        decoders = self._decoders.of_device(key)
        for each in decoders:
            if isinstance(each, BThome):
                each.is_new = PacketCounter(device, self._host.services.packet_counters).accept
        return decoders


def _is_news(received: Received, each: DecodedValue) -> bool:
    """Return whether a value is published although the last advertisement was just before."""
    if each.is_event:
        return True
    known = received.states.get((each.quantity, each.instance))
    return isinstance(each.value, bool) and each.value != known


def _series(settings: BleSettings, _name: str) -> Iterator[tuple[str, str]]:
    for index, device in enumerate(settings.device):
        for number, each in enumerate(device.characteristic):
            topic = series_topic(device.node_name, each.quantity, device.instance_of(each))
            yield f"device[{index}].characteristic[{number}].quantity", topic


async def _scan(options: ScanOptions) -> list[FoundTable]:
    from gateway.bridges.ble.scan_devices import scan_devices

    return await scan_devices(options)


KIND = BridgeKind(
    name="ble",
    summary="Bluetooth Low Energy: what sensors advertise, and what can be read from them",
    settings=BleSettings,
    make=BleBridge,
    needs=("bleak", "bthome_ble"),
    extra="ble",
    counters={
        "advertisements": "Advertisements received.",
        "not_listed": "Advertisements of devices that are not listed.",
        "too_weak": "Advertisements with a weak signal.",
        "too_soon": "Advertisements too soon after the previous one, without events or new states.",
        "not_decoded": "Advertisements without a decoder.",
        "malformed": "Advertisements on which a decoder failed.",
        "duplicates": "Packets that were repeated, or replayed with an old counter.",
        "undecrypted": "Encrypted packets without the right key.",
        "downgrades": "Packets without encryption of a device that has a key.",
        "forgotten": "Devices forgotten because there were too many.",
        "gatt_values": "Values read from devices or notified by them.",
        "invalid": 'Values that mean "no value".',
        "gatt_failures": "Connections that failed or were lost, and values that could not be read.",
        "scan_restarts": "Scans restarted because nothing was received.",
        "power_cycles": "Power cycles of the adapter because nothing was received.",
    },
    default_name=lambda settings: settings.adapter,
    place=lambda settings: settings.adapter,
    scan=_scan,
    series=_series,
)
