"""bleak itself with a BlueZ of the tests' own: scans, decoders, keys, stalls, GATT, limits."""

import contextlib
import re
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESCCM
from hypothesis import given
from hypothesis import strategies as st

from gateway.bridges.ble import ble_bridge, scan
from gateway.bridges.ble.ble_bridge import KIND, MISSES_MAX, BleBridge, StallSteps
from gateway.bridges.ble.ble_settings import BleDevice, BleSettings
from gateway.bridges.ble.decoders import Advertisement
from gateway.bridges.supervision.supervisor import Supervisor
from gateway.config.bridges import BridgeConfig
from gateway.config.reader import Reader
from tests.support.clocks import ManualClock
from tests.support.disk.storage import until
from tests.support.nodes.bridges import Gateway
from tests.support.nodes.fake_bluez import Bus, FakeBluez
from tests.support.table import table

pytestmark = pytest.mark.skipif(
    shutil.which("dbus-daemon") is None, reason="needs dbus-daemon: apt-get install dbus"
)

ADDRESS = "A4:C1:38:11:22:33"
BTHOME = "0000fcd2-0000-1000-8000-00805f9b34fb"
SENSING = "0000181a-0000-1000-8000-00805f9b34fb"
TEMPERATURE = "00002a6e-0000-1000-8000-00805f9b34fb"
PRESSURE = "00002a6d-0000-1000-8000-00805f9b34fb"
HUMIDITY = "00002a6f-0000-1000-8000-00805f9b34fb"
KEY = "231d39c1d7cc1ab1aee224cd096db932"


LISTED: dict[str, Any] = {"address": ADDRESS, "key": KEY}


def bthome(packet: int, celsius: float = 25.06) -> bytes:
    value = round(celsius * 100).to_bytes(2, "little", signed=True)
    return b"\x40\x00" + bytes([packet]) + b"\x02" + value


def encrypted(counter: int, plain: bytes, key: str = KEY) -> bytes:
    """BTHome v2: AES-CCM with address, UUID, device information and counter as the nonce."""
    count = counter.to_bytes(4, "little")
    nonce = bytes.fromhex(ADDRESS.replace(":", "")) + b"\xd2\xfc\x41" + count
    sealed = AESCCM(bytes.fromhex(key), tag_length=4).encrypt(nonce, plain, None)
    return b"\x41" + sealed[:-4] + count + sealed[-4:]


def devices(tables: list[dict[str, Any]]) -> tuple[BleDevice, ...]:
    """Return listed devices, as a configuration file would name them."""
    return Reader("tidegate.toml").read(BleSettings, {"device": tables}).device


def test_an_address_is_listed_once() -> None:
    reader = Reader("tidegate.toml")
    reader.read(BleSettings, {"device": [{"address": ADDRESS}, {"address": ADDRESS.lower()}]})
    assert "device[1].address" in str(reader.mistakes[0])


@pytest.fixture
def bus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bus]:
    bus = Bus(tmp_path)
    monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", bus.address)
    yield bus
    bus.close()


@pytest.fixture
def gateway() -> Gateway:
    return Gateway.make()


@contextlib.asynccontextmanager
async def bridging(gateway: Gateway, **options: Any) -> AsyncIterator[None]:
    options.setdefault("interval", 0.0)
    supervisor = Supervisor(gateway.services)
    await supervisor.apply([BridgeConfig(KIND, "hci0", BleSettings(**options))])
    try:
        yield
    finally:
        await supervisor.close()


def state(gateway: Gateway) -> object:
    return gateway.figure("ble/hci0/state")


async def test_a_board_without_bluez_is_told_what_it_lacks(
    gateway: Gateway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", f"unix:path={tmp_path}/none")
    async with bridging(gateway):
        await until(lambda: "bluetoothd" in str(gateway.figure("ble/hci0/error")))


async def test_advertisements_become_readings_and_repeated_packets_do_not(
    bus: Bus, gateway: Gateway
) -> None:
    async with FakeBluez(bus.address) as bluez, bridging(gateway):
        await until(lambda: bluez.adapter.discovering)
        device = bluez.add(ADDRESS)
        for packet, celsius in ((1, 25.06), (1, 25.06), (2, 25.5)):
            seen = gateway.figure("ble/advertisements")
            device.advertise({BTHOME: bthome(packet, celsius)}, rssi=-61 - packet)
            await until(lambda seen=seen: gateway.figure("ble/advertisements") != seen)  # type: ignore[misc]  # of this round
        await until(lambda: len(gateway.broker.messages) >= 4)
    values = [
        fields["value"]
        for topic, fields in gateway.broker.readings
        if topic.endswith("/temperature")
    ]
    assert values == [25.06, 25.5]
    assert gateway.broker.readings[0][0] == "sensors/a4c138112233/temperature"
    assert gateway.figure("ble/duplicates") == 1
    assert bluez.adapter.log == ["start", "stop"]


async def test_a_passive_scan_registers_a_monitor(bus: Bus, gateway: Gateway) -> None:
    async with FakeBluez(bus.address) as bluez, bridging(gateway, scanning="passive"):
        await until(lambda: bool(bluez.monitors.registered))
    assert bluez.adapter.log == []


async def test_a_stalled_scan_is_started_again_then_without_power_then_an_alarm(
    bus: Bus, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan, "OFF_TIME", 0.01)
    async with FakeBluez(bus.address) as bluez, bridging(gateway, stall=0.2):
        await until(lambda: bool(gateway.alarms.raised))
        steps = ["start", *("stop", "start"), *("stop", "off", "on", "start")]
        assert bluez.adapter.log[:7] == steps
        assert "no advertisement" in gateway.alarms.raised["bridge-ble-hci0"]
        assert state(gateway) == "silent"
        bluez.add(ADDRESS).advertise({BTHOME: bthome(1)})
        await until(lambda: not gateway.alarms.raised)
        assert state(gateway) == "open"


async def test_without_bluez_it_waits_and_finds_it_when_it_comes(
    bus: Bus, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with bridging(gateway):
        await until(lambda: "org.bluez" in str(gateway.figure("ble/hci0/error")))
        assert state(gateway) == "waiting"
        async with FakeBluez(bus.address):
            await until(lambda: state(gateway) == "open")


async def test_characteristics_are_read_and_notified_and_the_connection_comes_back(
    bus: Bus, gateway: Gateway
) -> None:
    characteristics = [
        {"uuid": "2a6e", "quantity": "temperature", "scale": 0.01, "unit": "°C", "interval": 1},
        {
            "uuid": HUMIDITY,
            "quantity": "humidity",
            "type": "uint16",
            "notify": True,
            "invalid": "usual",
        },
    ]
    listed = devices([{"address": ADDRESS, "node": "lamp", "characteristic": characteristics}])
    values = {TEMPERATURE: b"\x34\x08", HUMIDITY: b"\x00\x00"}
    async with FakeBluez(bus.address) as bluez:
        device = bluez.add(ADDRESS, {SENSING: values})
        async with bridging(gateway, device=listed):
            await until(lambda: bluez.adapter.discovering)
            device.advertise({}, rssi=-50)
            await until(
                lambda: (
                    HUMIDITY in bluez.characteristics and bluez.characteristics[HUMIDITY].notifying
                )
            )
            bluez.characteristics[HUMIDITY].notify(b"\xff\xff")
            bluez.characteristics[HUMIDITY].notify(b"\x28\x00")
            await until(lambda: len(gateway.broker.messages) >= 2)
            device.drop()
            await until(lambda: gateway.figure("ble/gatt_failures") == 1)
            device.advertise({}, rssi=-51)
            await until(lambda: device.connected)
    found = {topic: fields["value"] for topic, fields in gateway.broker.readings}
    assert gateway.figure("ble/invalid") == 1
    assert found == {"sensors/lamp/temperature": 21.0, "sensors/lamp/humidity": 40}


async def test_one_characteristic_that_cannot_be_read_costs_no_other(
    bus: Bus, gateway: Gateway, caplog: pytest.LogCaptureFixture
) -> None:
    characteristics = [
        {"uuid": "2a19", "quantity": "battery"},
        {"uuid": HUMIDITY, "quantity": "humidity", "notify": True},
        {"uuid": PRESSURE, "quantity": "pressure", "interval": 1},
        {"uuid": "2a6e", "quantity": "temperature", "interval": 1},
    ]
    listed = devices([{"address": ADDRESS, "node": "lamp", "characteristic": characteristics}])
    values = {TEMPERATURE: b"\x34\x08", HUMIDITY: b"", PRESSURE: b""}
    async with FakeBluez(bus.address) as bluez:
        device = bluez.add(ADDRESS, {SENSING: values})
        async with bridging(gateway, device=listed):
            await until(lambda: bluez.adapter.discovering)
            device.advertise({}, rssi=-50)
            await until(lambda: gateway.counters.count("tidegate/ble/gatt_values") >= 2)
            await until(lambda: gateway.counters.count("tidegate/ble/gatt_failures") >= 4)
            assert device.connected
    assert {topic for topic, _ in gateway.broker.readings} == {"sensors/lamp/temperature"}
    lines = [text for text in caplog.messages if ADDRESS in text]
    assert len(lines) == 3
    assert "(battery): the device does not have it" in lines[0]


def heard(data: bytes, time: float, rssi: int = -60, address: str = ADDRESS) -> Advertisement:
    return Advertisement(address, None, rssi, {BTHOME: data}, {}, [], time)


def bridge(gateway: Gateway, **options: Any) -> BleBridge:
    return BleBridge(BleSettings(**options), gateway.host("ble", "hci0"))


def test_packets_that_no_parser_knows_are_tried_less_and_less(gateway: Gateway) -> None:
    tried: list[int] = []

    class Parser:
        def decode(self, advertisement: Advertisement) -> list[tuple[str, int]] | None:
            tried.append(advertisement.rssi)
            return [("battery", 80)] if advertisement.rssi == -1 else None

    ours = bridge(gateway, interval=0)
    ours._decoders._make = [lambda _: Parser()]
    for place in range(3 * MISSES_MAX):
        ours.on_advertisement(heard(bytes([place % 256]), float(place)))
    assert len(tried) == MISSES_MAX + 2
    assert gateway.figure("ble/not_decoded") == 3 * MISSES_MAX
    ours.on_advertisement(heard(b"", 999.0, rssi=-1))
    ours.on_advertisement(heard(b"x", 1000.0))
    assert len(tried) == MISSES_MAX + 4, "one that is known begins again"
    assert gateway.figure("ble/readings") == 1


PLAIN = bthome(1)[1:]
SEALED: list[tuple[str, bytes, str | None]] = [
    ("first", encrypted(1000, PLAIN), None),
    ("repeated", encrypted(1000, PLAIN), "duplicates"),
    ("later", encrypted(1001, b"\x00\x02" + PLAIN[2:]), None),
    ("replayed", encrypted(1000, PLAIN), "duplicates"),
    ("of another key", encrypted(1002, PLAIN, "00" * 16), "undecrypted"),
    ("plain", bthome(9), "downgrades"),
]


def test_encrypted_packets_need_the_key_and_a_rising_counter(gateway: Gateway) -> None:
    listed = devices([{"address": ADDRESS.lower(), "node": "cellar", "key": KEY}])
    ours = bridge(gateway, device=listed, interval=0.0)
    for place, (name, data, counter) in enumerate(SEALED):
        before = gateway.counters.count(f"tidegate/ble/{counter}")
        messages = len(gateway.broker.messages)
        ours.on_advertisement(heard(data, 10.0 * place))
        assert (len(gateway.broker.messages) > messages) == (counter is None), name
        if counter is not None:
            assert gateway.counters.count(f"tidegate/ble/{counter}") == before + 1, name
    assert {topic for topic, _ in gateway.broker.readings} <= {
        "sensors/cellar/temperature",
        "sensors/cellar/signal_strength",
    }


REPLAYS: list[tuple[str, int, bool, bool]] = [
    ("a low counter", 50, False, False),
    ("an old one", 999, False, False),
    ("the last one", 1001, False, False),
    ("a new one", 1002, False, True),
    ("the last one of a device that counts anew", 1001, True, False),
    ("an old one of it", 999, True, False),
    ("a low one of it", 50, True, True),
]


@table("name, counter, restarts, taken", REPLAYS)
def test_an_old_packet_is_refused_after_a_restart_of_the_gateway(
    name: str, counter: int, restarts: bool, taken: bool
) -> None:
    gateway = Gateway.make(ManualClock())
    listed = devices([{"address": ADDRESS, "key": KEY, "counter_restarts": restarts}])
    bridge(gateway, device=listed).on_advertisement(heard(encrypted(1001, PLAIN), 1.0))
    before = len(gateway.broker.messages)
    again = bridge(gateway, device=listed)
    again.on_advertisement(heard(encrypted(counter, PLAIN), 60.0))
    assert (len(gateway.broker.messages) > before) == taken, name
    other = devices([{"address": ADDRESS, "key": "00" * 16}])
    before = len(gateway.broker.messages)
    bridge(gateway, device=other).on_advertisement(heard(encrypted(1, PLAIN, "00" * 16), 120.0))
    assert len(gateway.broker.messages) > before, f"{name}: another key begins anew"


def plain(objects: str) -> bytes:
    return b"\x40" + bytes.fromhex(objects)


def test_events_and_states_are_not_lost_to_the_interval(gateway: Gateway) -> None:
    """A door that closes 0.3 s after it opened, and a button pressed three times in a second."""
    taking = bridge(gateway, interval=10)
    packets = [
        (0.0, "0001 02c409 1101"),  # 25 °C, open
        (0.1, "0001 02c409 1101"),
        (0.3, "0002 02c409 1100"),  # closed
        (0.5, "0003 3a01"),
        (0.6, "0003 3a01"),
        (0.7, "0004 3a01"),
        (0.9, "0005 3a01"),
        (1.5, "0006 02ce09 1100"),
    ]
    for time, objects in packets:
        taking.on_advertisement(heard(plain(objects), time))
    found = [
        (topic.rpartition("/")[2], each["value"])
        for topic, each in gateway.broker.readings
        if "signal" not in topic
    ]
    assert found == [
        ("temperature", 25.0),
        ("opening", True),
        ("opening", False),
        *[("button", "press")] * 3,
    ]
    assert gateway.figure("ble/too_soon") == 3


def test_two_devices_of_one_node_are_apart_by_their_addresses(gateway: Gateway) -> None:
    other = "A4:C1:38:11:22:34"
    listed = [{"address": ADDRESS, "node": "cellar"}, {"address": other, "node": "cellar"}]
    listed.append({"address": "A4:C1:38:11:22:35", "node": "cellar", "instance": "shelf"})
    taking = bridge(gateway, device=devices(listed))
    for address in (ADDRESS, other, "A4:C1:38:11:22:35"):
        taking.on_advertisement(heard(bthome(1), 1.0, address=address))
    topics = [topic for topic, _ in gateway.broker.readings if "temperature" in topic]
    assert topics == [
        "sensors/cellar/temperature",
        "sensors/cellar/temperature/a4c138112234",
        "sensors/cellar/temperature/shelf",
    ]
    assert gateway.strangers == set()
    taking.on_advertisement(heard(bthome(1), 1.0, address="A4:C1:38:11:22:36"))
    assert gateway.strangers == {"a4c138112236"}


def test_counters_of_a_device_that_splits_its_packets_or_counts_anew(
    gateway: Gateway, caplog: pytest.LogCaptureFixture
) -> None:
    warm, wet = bytes.fromhex("02c409"), bytes.fromhex("038813")

    def taken(taking: BleBridge, packets: list[tuple[int, bytes]]) -> list[bool]:
        found = []
        for number, (counter, content) in enumerate(packets):
            before = len(gateway.broker.messages)
            taking.on_advertisement(heard(encrypted(counter, content), 100.0 * number))
            found.append(len(gateway.broker.messages) > before)
        return found

    split = [(200, warm), (200, wet), (200, warm), (150, warm), (151, warm), (152, warm)]
    listed = devices([LISTED])
    back = [(201, warm), (200, wet), (202, warm), (201, warm), (203, warm)]
    expected = [True, True, *[False] * 4, True, False, True, False, True]
    assert taken(bridge(gateway, device=listed), split + back) == expected
    assert caplog.text.count("a packet with the counter 150 after 200 is dropped") == 1
    assert caplog.text.count(" is dropped") == 1
    again = bridge(gateway, device=listed)
    assert taken(again, [(203, wet), (204, wet)]) == [False, True], "after a restart"
    patient = bridge(gateway, device=devices([LISTED | {"counter_restarts": True}]))
    rising = [(150, warm), (151, warm), (152, warm), (153, warm), (7, warm)]
    assert taken(patient, rising) == [False, False, True, True, True]
    assert gateway.packet_counters.forget(ADDRESS) == 1
    assert taken(bridge(gateway, device=listed), [(3, warm)]) == [True]


def test_lists_strength_and_rate_limit_what_is_taken(gateway: Gateway) -> None:
    listed = devices([{"address": ADDRESS}])
    ours = bridge(gateway, accept="listed", rssi=-80, interval=5.0, device=listed)
    ours.on_advertisement(heard(bthome(1), 100.0))
    ours.on_advertisement(heard(bthome(2), 104.0))
    ours.on_advertisement(heard(bthome(3), 105.0, rssi=-81))
    ours.on_advertisement(heard(bthome(3), 105.0, address="00:00:00:00:00:01"))
    ours.on_advertisement(heard(bthome(4), 105.0))
    assert {
        name: gateway.figure(f"ble/{name}") for name in ("too_soon", "too_weak", "not_listed")
    } == {"too_soon": 1, "too_weak": 1, "not_listed": 1}
    assert sum(topic.endswith("/temperature") for topic, _ in gateway.broker.readings) == 2


def test_devices_that_are_remembered_are_bounded(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ble_bridge, "RECEIVED_MAX", 3)
    ours = bridge(gateway)
    for place in range(5):
        ours.on_advertisement(heard(bthome(1), 1.0, address=f"00:00:00:00:00:0{place}"))
    assert gateway.figure("ble/forgotten") == 2


def test_made_up_addresses_do_not_have_a_counter_forgotten(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ble_bridge, "RECEIVED_MAX", 3)
    ours = bridge(gateway, device=devices([{"address": ADDRESS, "key": KEY}]))
    ours.on_advertisement(heard(encrypted(7, b"\x02\xca\x09"), 1.0))
    for place in range(5):
        ours.on_advertisement(heard(bthome(1), 2.0, address=f"00:00:00:00:00:0{place}"))
    taken = len(gateway.broker.messages)
    assert taken == 2 * 6
    ours.on_advertisement(heard(encrypted(7, b"\x02\xca\x09"), 60.0))
    assert len(gateway.broker.messages) == taken
    assert gateway.figure("ble/duplicates") == 1


@pytest.mark.uncovered
@given(st.binary(max_size=40), st.sampled_from([b"", b"\x40", b"\x41", b"\x44"]))
def test_no_advertisement_raises_anything(data: bytes, start: bytes) -> None:
    gateway = Gateway.make(ManualClock())
    key = devices([{"address": ADDRESS, "key": KEY}])
    bridge(gateway).on_advertisement(heard(start + data, 1.0))
    bridge(gateway, device=key).on_advertisement(heard(start + data, 1.0))


def test_the_steps_begin_anew_after_the_last_and_are_slower_then() -> None:
    steps = StallSteps(10.0, 0.0)
    reported = [(now, step) for now in range(200) if (step := steps.next(float(now)))]
    assert [now for now, _ in reported] == [10, 20, 30, 50, 70, 90, 130, 170]
    assert [step for _, step in reported][:4] == [
        "restart the scan",
        "power-cycle the adapter",
        "alarm",
        "restart the scan",
    ]
    steps.received(300.0)
    assert steps.next(309.0) is None
    assert steps.next(310.0) == "restart the scan"


MISTAKES: list[tuple[Any, str]] = [
    ("x", r"one for each"),
    ([{"address": ADDRESS}] * 201, "0 to 200 tables"),
    ([{"node": "a"}], r"\[0\].address: must be given"),
    ([{"address": "A4:C1"}], r"\[0\].address.*an address such as"),
    ([{"address": ADDRESS, "key": "00"}], r"\[0\].key.*32 hexadecimal digits"),
    ([{"address": ADDRESS, "characteristic": [{"uuid": "2a6e"}]}], "quantity: must be given"),
    ([{"address": ADDRESS, "characteristic": [{"uuid": "xyz", "quantity": "a"}]}], "a UUID"),
    ([{"address": ADDRESS, "nod": 1}], "did you mean node"),
]


@table("value, reason", MISTAKES)
def test_devices_that_cannot_be_used(value: object, reason: str) -> None:
    reader = Reader("tidegate.toml")
    reader.read(BleSettings, {"device": value}, "ble")
    (mistake,) = reader.mistakes
    assert re.search(reason, str(mistake))
