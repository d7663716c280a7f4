"""Values of a device's characteristics, read or notified over a separate connection."""

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING

from gateway.bridges.ble.ble_settings import BleDevice, Characteristic
from gateway.bridges.ble.scan import RefusedError, answered
from gateway.bridges.supervision.host import Host
from gateway.bridges.supervision.interfaces import BridgeError
from gateway.bridges.supervision.supervised import Backoff

if TYPE_CHECKING:
    from bleak import BleakClient
    from bleak.backends.device import BLEDevice

logger = logging.getLogger(__name__)


class GattReader:
    """Maintains a connection to one device; a failure affects only this device.

    It connects to a device that the scan has found (`seen`): its own search would be a second scan,
    which BlueZ refuses.
    """

    def __init__(self, device: BleDevice, adapter: str, host: Host) -> None:
        self._device = device
        self._adapter = adapter
        self._host = host
        self._found: BLEDevice | None = None
        self._seen = asyncio.Event()
        self._named: set[str] = set()

    def seen(self, device: "BLEDevice") -> None:
        """Note that the scan has found the device."""
        self._found = device
        self._seen.set()

    async def run(self) -> None:
        """Read until cancelled; connect again whenever the connection is lost."""
        backoff = Backoff(1.0, 2.0, 60.0)
        trouble = ""
        while True:
            try:
                await self._read_until_lost(backoff)
            except BridgeError as failure:
                self._host.count("gatt_failures")
                if str(failure) != trouble:
                    trouble = str(failure)
                    logger.warning("%s: %s: %s", self._host.title, self._device.address, trouble)
            await asyncio.sleep(backoff.next())

    async def _read_until_lost(self, backoff: Backoff) -> None:
        from bleak import BleakClient

        await self._seen.wait()
        self._seen.clear()  # after a failure the scan has to find it again
        lost = asyncio.Event()
        client = BleakClient(
            self._found or self._device.address,
            disconnected_callback=lambda _: lost.set(),
            bluez={"adapter": self._adapter},
        )
        await answered(client.connect())
        try:
            backoff.reset()
            async with asyncio.TaskGroup() as readers:
                for each in self._device.characteristic:
                    if client.services.get_characteristic(each.uuid) is None:
                        self._fail(each, "the device does not have it")
                    elif each.notify:
                        await self._subscribe(client, each)
                    else:
                        readers.create_task(self._poll(client, each))
                readers.create_task(_until(lost))
        except* BridgeError as failures:
            raise failures.exceptions[0] from None
        finally:
            await _hang_up(client)

    async def _subscribe(self, client: "BleakClient", each: Characteristic) -> None:
        try:
            await answered(client.start_notify(each.uuid, partial(self._on_notification, each)))
        except RefusedError as failure:
            self._refused(client, each, failure)

    async def _poll(self, client: "BleakClient", each: Characteristic) -> None:
        while True:
            try:
                self._on_value(each, bytes(await answered(client.read_gatt_char(each.uuid))))
            except RefusedError as failure:
                self._refused(client, each, failure)
            await asyncio.sleep(each.interval)

    def _refused(self, client: "BleakClient", each: Characteristic, failure: RefusedError) -> None:
        """Continue with the others while the device is connected, else raise the failure."""
        if not client.is_connected:
            raise failure
        self._fail(each, str(failure))

    def _fail(self, each: Characteristic, reason: str) -> None:
        """Count a characteristic that cannot be read, and log it once."""
        self._host.count("gatt_failures")
        if each.uuid not in self._named:
            self._named.add(each.uuid)
            title, address = self._host.title, self._device.address
            logger.warning("%s: %s: %s (%s): %s", title, address, each.uuid, each.quantity, reason)

    def _on_notification(self, each: Characteristic, _: object, data: bytearray) -> None:
        self._on_value(each, bytes(data))

    def _on_value(self, each: Characteristic, data: bytes) -> None:
        if each.is_invalid(data):
            self._host.count("invalid")
            return
        try:
            value = each.value(data)
        except ValueError as failure:
            self._host.publisher.reject(f"{each.uuid}: {failure}")
            return
        self._host.count("gatt_values")
        device = self._device
        instance = device.instance_of(each)
        self._host.read(
            device.node_name, each.quantity, value, each.unit, instance=instance, lossy=True
        )


async def _until(lost: asyncio.Event) -> None:
    await lost.wait()
    raise BridgeError("the connection was lost")


async def _hang_up(client: "object") -> None:
    try:
        await answered(client.disconnect())  # type: ignore[attr-defined]  # a BleakClient
    except BridgeError as failure:
        logger.debug("disconnecting: %s", failure)
