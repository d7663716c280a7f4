"""A bleak scan, and its adapter."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gateway.bridges.supervision.interfaces import BridgeError

if TYPE_CHECKING:
    from bleak import BleakScanner
    from bleak.backends.device import BLEDevice
    from bleak.backends.scanner import AdvertisementData

    OnAdvertisement = Callable[[BLEDevice, AdvertisementData], None]

ANSWER_TIMEOUT = 20.0
"""Seconds within which BlueZ must answer."""

OFF_TIME = 1.0
"""Seconds for which an adapter stays powered off."""

BLUEZ = "org.bluez"


class Scan:
    """Scans until `stop`; every failure is a BridgeError."""

    def __init__(self, adapter: str, scanning: str, on_advertisement: "OnAdvertisement") -> None:
        self._adapter = adapter
        self._scanning = scanning
        self._on_advertisement = on_advertisement
        self._scanner: BleakScanner | None = None

    async def start(self) -> None:
        """Start scanning."""
        from bleak import BleakScanner

        options: dict[str, Any] = {"adapter": self._adapter}
        if self._scanning == "passive":
            options["or_patterns"] = _patterns()
        self._scanner = BleakScanner(
            self._on_advertisement,
            scanning_mode="passive" if self._scanning == "passive" else "active",
            bluez=options,  # type: ignore[arg-type]  # a TypedDict of these
        )
        await answered(self._scanner.start())

    async def stop(self) -> None:
        """Stop scanning, if BlueZ still runs."""
        scanner, self._scanner = self._scanner, None
        if scanner is not None:
            await answered(scanner.stop())

    async def cycle_power(self) -> None:
        """Power the adapter off and on."""
        await answered(self._set_powered(on=False))
        await asyncio.sleep(OFF_TIME)
        await answered(self._set_powered(on=True))

    async def _set_powered(self, *, on: bool) -> None:
        from dbus_fast import BusType, Message, MessageType, Variant
        from dbus_fast.aio import MessageBus

        bus = await MessageBus(bus_type=BusType.SYSTEM).connect()
        try:
            reply = await bus.call(
                Message(
                    destination=BLUEZ,
                    path=f"/org/bluez/{self._adapter}",
                    interface="org.freedesktop.DBus.Properties",
                    member="Set",
                    signature="ssv",
                    body=["org.bluez.Adapter1", "Powered", Variant("b", on)],
                )
            )
        finally:
            bus.disconnect()
        if reply is not None and reply.message_type is MessageType.ERROR:
            raise BridgeError(f"the adapter's power: {' '.join(map(str, reply.body))}")


class RefusedError(BridgeError):
    """An error answer of BlueZ or of a device."""


async def answered(question: Any) -> Any:
    """Return the answer of BlueZ.

    Raises RefusedError for an error, BridgeError for none in ANSWER_TIMEOUT.
    """
    from bleak.exc import BleakError
    from dbus_fast.errors import DBusError

    try:
        async with asyncio.timeout(ANSWER_TIMEOUT):
            return await question
    except TimeoutError:
        raise BridgeError(f"BlueZ does not answer within {ANSWER_TIMEOUT:g} s") from None
    except FileNotFoundError:
        raise BridgeError("no D-Bus system bus: is BlueZ (bluetoothd) installed?") from None
    except (BleakError, DBusError, OSError, EOFError) as failure:
        raise RefusedError(str(failure) or type(failure).__name__) from failure


def _patterns() -> list[Any]:
    """Return what a passive scan reports: devices that say what they are, and BTHome."""
    from bleak.args.bluez import OrPattern
    from bleak.assigned_numbers import AdvertisementDataType

    return [
        OrPattern(0, AdvertisementDataType.FLAGS, b"\x06"),
        OrPattern(0, AdvertisementDataType.FLAGS, b"\x1a"),
        OrPattern(0, AdvertisementDataType.SERVICE_DATA_UUID16, b"\xd2\xfc"),
    ]
