"""A small org.bluez on a private bus: what bleak asks of an adapter and of devices."""

import asyncio
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from dbus_fast import BusType, DBusError, PropertyAccess, Variant
from dbus_fast.aio import MessageBus
from dbus_fast.service import ServiceInterface, dbus_property, method

READ = PropertyAccess.READ
ADAPTER = "/org/bluez/hci0"

BUS = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>system</type>
  <listen>unix:path={path}</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow user="*"/><allow own="*"/><allow send_destination="*" eavesdrop="true"/>
    <allow receive_type="method_call"/><allow receive_type="signal"/>
    <allow receive_type="method_return"/><allow receive_type="error"/>
  </policy>
</busconfig>
"""


class Bus:
    """A bus daemon of the test's own; `address` belongs into DBUS_SYSTEM_BUS_ADDRESS."""

    def __init__(self, folder: Path) -> None:
        path = folder / "bus"
        config = folder / "bus.conf"
        config.write_text(BUS.format(path=path))
        self.address = f"unix:path={path}"
        self.process = subprocess.Popen(
            [
                "dbus-daemon",
                f"--config-file={config}",
                "--nofork",
                "--nopidfile",
                "--print-address",
            ],
            stdout=subprocess.PIPE,
        )
        assert self.process.stdout is not None
        self.process.stdout.readline()  # it listens

    def close(self) -> None:
        self.process.terminate()
        self.process.communicate(timeout=60)


# dbus-fast reads signatures from annotations, so they are strings such as "s" here.
# ruff: noqa: F722, F821, N802
# mypy: ignore-errors


class Adapter(ServiceInterface):
    def __init__(self) -> None:
        super().__init__("org.bluez.Adapter1")
        self.discovering = False
        self.powered = True
        self.log: list[str] = []

    @dbus_property(READ)
    def Address(self) -> "s":
        return "00:11:22:33:44:55"

    @dbus_property(READ)
    def Name(self) -> "s":
        return "fake"

    @dbus_property(READ)
    def Discovering(self) -> "b":
        return self.discovering

    @dbus_property(READ)
    def Roles(self) -> "as":
        return ["central", "peripheral"]

    @dbus_property()
    def Powered(self) -> "b":
        return self.powered

    @Powered.setter
    def Powered(self, on: "b"):
        self.powered = on
        self.log.append("on" if on else "off")
        self.emit_properties_changed({"Powered": on})

    @method()
    def SetDiscoveryFilter(self, options: "a{sv}"):
        pass

    @method()
    def StartDiscovery(self):
        if self.discovering:
            raise DBusError("org.bluez.Error.InProgress", "Operation already in progress")
        self.log.append("start")
        self.discovering = True
        self.emit_properties_changed({"Discovering": True})

    @method()
    def StopDiscovery(self):
        self.log.append("stop")
        self.discovering = False
        self.emit_properties_changed({"Discovering": False})

    @method()
    def RemoveDevice(self, path: "o"):
        pass


class Monitors(ServiceInterface):
    """What a passive scan asks for."""

    def __init__(self) -> None:
        super().__init__("org.bluez.AdvertisementMonitorManager1")
        self.registered: list[str] = []

    @method()
    def RegisterMonitor(self, path: "o"):
        self.registered.append(path)

    @method()
    def UnregisterMonitor(self, path: "o"):
        self.registered.remove(path)

    @dbus_property(READ)
    def SupportedMonitorTypes(self) -> "as":
        return ["or_patterns"]

    @dbus_property(READ)
    def SupportedFeatures(self) -> "as":
        return ["controller-patterns"]


class Device(ServiceInterface):
    def __init__(self, bluez: "FakeBluez", address: str, gatt: dict[str, dict[str, bytes]]) -> None:
        super().__init__("org.bluez.Device1")
        self.bluez, self.address, self.gatt = bluez, address, gatt
        self.service_data: dict[str, Variant] = {}
        self.rssi = -60
        self.connected = self.resolved = False

    def advertise(self, service_data: dict[str, bytes], rssi: int = -60) -> None:
        self.rssi = rssi
        self.service_data = {uuid: Variant("ay", data) for uuid, data in service_data.items()}
        self.emit_properties_changed({"RSSI": rssi, "ServiceData": self.service_data})

    def drop(self) -> None:
        self.connected = self.resolved = False
        self.emit_properties_changed({"ServicesResolved": False, "Connected": False})

    @dbus_property(READ)
    def Address(self) -> "s":
        return self.address

    @dbus_property(READ)
    def AddressType(self) -> "s":
        return "random"

    @dbus_property(READ)
    def Alias(self) -> "s":
        return self.address

    @dbus_property(READ)
    def Adapter(self) -> "o":
        return ADAPTER

    @dbus_property(READ)
    def Paired(self) -> "b":
        return False

    @dbus_property(READ)
    def Bonded(self) -> "b":
        return False

    @dbus_property(READ)
    def Trusted(self) -> "b":
        return False

    @dbus_property(READ)
    def Blocked(self) -> "b":
        return False

    @dbus_property(READ)
    def LegacyPairing(self) -> "b":
        return False

    @dbus_property(READ)
    def Connected(self) -> "b":
        return self.connected

    @dbus_property(READ)
    def ServicesResolved(self) -> "b":
        return self.resolved

    @dbus_property(READ)
    def UUIDs(self) -> "as":
        return list(self.gatt)

    @dbus_property(READ)
    def RSSI(self) -> "n":
        return self.rssi

    @dbus_property(READ)
    def ServiceData(self) -> "a{sv}":
        return self.service_data

    @dbus_property(READ)
    def ManufacturerData(self) -> "a{qv}":
        return {}

    @method()
    async def Connect(self):
        if not self.gatt:
            raise DBusError("org.bluez.Error.Failed", "le-connection-abort-by-local")
        self.connected = True
        self.emit_properties_changed({"Connected": True})
        self.bluez.export_gatt(self)
        self.resolved = True
        self.emit_properties_changed({"ServicesResolved": True})

    @method()
    def Disconnect(self):
        self.drop()


class Service(ServiceInterface):
    def __init__(self, uuid: str, device: str) -> None:
        super().__init__("org.bluez.GattService1")
        self.uuid, self.device = uuid, device

    @dbus_property(READ)
    def UUID(self) -> "s":
        return self.uuid

    @dbus_property(READ)
    def Device(self) -> "o":
        return self.device

    @dbus_property(READ)
    def Primary(self) -> "b":
        return True


class Characteristic(ServiceInterface):
    def __init__(self, uuid: str, service: str, value: bytes) -> None:
        super().__init__("org.bluez.GattCharacteristic1")
        self.uuid, self.service, self.value, self.notifying = uuid, service, value, False

    def notify(self, value: bytes) -> None:
        self.value = value
        self.emit_properties_changed({"Value": value})

    @dbus_property(READ)
    def UUID(self) -> "s":
        return self.uuid

    @dbus_property(READ)
    def Service(self) -> "o":
        return self.service

    @dbus_property(READ)
    def Value(self) -> "ay":
        return self.value

    @dbus_property(READ)
    def Flags(self) -> "as":
        return ["read", "notify"]

    @dbus_property(READ)
    def Notifying(self) -> "b":
        return self.notifying

    @dbus_property(READ)
    def MTU(self) -> "q":
        return 247

    @method()
    def ReadValue(self, options: "a{sv}") -> "ay":
        if not self.value:
            raise DBusError("org.bluez.Error.NotPermitted", "Read not permitted")
        return self.value

    @method()
    def StartNotify(self):
        if not self.value:
            raise DBusError("org.bluez.Error.NotSupported", "Operation is not supported")
        self.notifying = True
        self.emit_properties_changed({"Notifying": True})

    @method()
    def StopNotify(self):
        self.notifying = False


class FakeBluez:
    """BlueZ with one adapter; `add` puts a device into the air."""

    def __init__(self, address: str) -> None:
        self._address = address
        self.adapter = Adapter()
        self.monitors = Monitors()
        self.devices: dict[str, Device] = {}
        self.characteristics: dict[str, Characteristic] = {}

    async def __aenter__(self) -> Self:
        self.bus = await MessageBus(self._address, bus_type=BusType.SYSTEM).connect()
        self.bus.export(ADAPTER, self.adapter)
        self.bus.export(ADAPTER, self.monitors)
        await self.bus.request_name("org.bluez")
        return self

    async def __aexit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _where: TracebackType | None,
    ) -> None:
        self.bus.disconnect()
        await self.bus.wait_for_disconnect()

    def add(self, address: str, gatt: dict[str, dict[str, bytes]] | None = None) -> Device:
        device = Device(self, address, gatt or {})
        self.devices[address] = device
        self.bus.export(f"{ADAPTER}/dev_{address.replace(':', '_')}", device)
        return device

    def export_gatt(self, device: Device) -> None:
        base = f"{ADAPTER}/dev_{device.address.replace(':', '_')}"
        for number, (uuid, values) in enumerate(device.gatt.items()):
            service = f"{base}/service{number:04x}"
            if values.keys() <= self.characteristics.keys():
                continue
            self.bus.export(service, Service(uuid, base))
            for place, (name, value) in enumerate(values.items()):
                one: Any = Characteristic(name, service, value)
                self.bus.export(f"{service}/char{place:04x}", one)
                self.characteristics[name] = one


async def settle() -> None:
    """Let messages of the bus come through."""
    await asyncio.sleep(0.01)
