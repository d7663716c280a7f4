"""The drivers, each with a chip that answers as its datasheet's examples do."""

import struct
import sys
from types import ModuleType
from typing import Any

import pytest


class Chip:
    """Registers on an I2C bus, and what is read after a command."""

    def __init__(self) -> None:
        self.registers: dict[int, bytes] = {}
        self.answer = b""
        self.written: list[tuple[int, bytes]] = []

    def readfrom_mem(self, _address: int, register: int, size: int) -> bytes:
        if register not in self.registers:
            raise OSError(5)
        return self.registers[register][:size]

    def writeto_mem(self, _address: int, register: int, data: bytes) -> None:
        self.written.append((register, data))

    def writeto(self, _address: int, data: bytes) -> None:
        self.written.append((-1, data))

    def readfrom(self, _address: int, size: int) -> bytes:
        return self.answer[:size]


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    fake: Any = ModuleType("machine")
    fake.Pin = lambda number: number
    fake.I2C = lambda *_arguments, **_settings: Chip()
    for name in ("machine", "dht", "onewire", "ds18x20"):
        monkeypatch.setitem(sys.modules, name, fake)
    for name in [name for name in sys.modules if name.startswith("node.drivers.")]:
        monkeypatch.delitem(sys.modules, name)
    made: ModuleType = fake
    return made


def test_a_bme280_gives_the_datasheets_example() -> None:
    from node.drivers.bme280 import Bme280

    chip = Chip()
    first = struct.pack("<Hhh", 27504, 26435, -1000)
    first += struct.pack("<Hhhhhhhhh", 36477, -10685, 3024, 2855, 140, -7, 15500, -14600, 6000)
    chip.registers = {
        0xD0: b"\x60",
        0x88: first + bytes([0, 75]),
        # H2 = 362, H3 = 0, H4 = 313 (its low four bits are 9), H5 = 50, H6 = 30
        0xE1: struct.pack("<hB", 362, 0)
        + bytes([313 >> 4, 50 << 4 & 0xF0 | 313 & 15, 50 >> 4, 30]),
        0xF7: bytes([415148 >> 12, 415148 >> 4 & 255, 415148 << 4 & 255])
        + bytes([519888 >> 12, 519888 >> 4 & 255, 519888 << 4 & 255])
        + struct.pack(">H", 30000),
    }
    temperature, humidity, pressure = Bme280(chip, 0x76).read()
    assert temperature == ("temperature", (2508, -2), "°C")
    assert pressure == ("pressure", (100653, -2), "hPa")
    fine = 128_422 - 76_800  # t_fine of the example; below is the formula with floats
    wet = (30_000 - (313 * 64 + 50 / 16_384 * fine)) * (362 / 65_536 * (1 + 30 / 2**26 * fine))
    wet *= 1 - 75 * wet / 524_288
    assert humidity == ("humidity", (humidity[1][0], -2), "%")
    assert humidity[1][0] == pytest.approx(wet * 100, abs=2)
    chip.registers[0xD0] = b"\x58"
    with pytest.raises(OSError, match="chip 0x58"):
        Bme280(chip, 0x76).read()


def test_an_sht3x_is_checked() -> None:
    from node.crc8 import crc8 as check
    from node.drivers.sht3x import Sht3x

    assert check(b"\xbe\xef") == 0x92  # the datasheet's example
    chip = Chip()
    chip.answer = b"".join(data + bytes([check(data)]) for data in (b"\x66\x66", b"\x80\x00"))
    assert Sht3x(chip, 0x44).read() == [
        ("temperature", (2500, -2), "°C"),
        ("humidity", (5000, -2), "%"),
    ]
    chip.answer = chip.answer[:5] + b"\x00"
    with pytest.raises(OSError, match="check"):
        Sht3x(chip, 0x44).read()


def test_a_wire_of_thermometers_and_a_dht22(machine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    class Wire:
        def __init__(self, _bus: object) -> None:
            self.celsius: dict[bytes, float] = {b"(a": 21.0625, b"(b": -0.5}
            self.scratch = bytes.fromhex("5005 4b46 7fff 0c10 1c")

        def scan(self) -> list[bytes]:
            return list(self.celsius)

        def read_scratch(self, _address: bytes) -> bytes:
            return self.scratch

        def convert_temp(self) -> None:
            pass

        def read_temp(self, address: bytes) -> float:
            if address not in self.celsius:
                raise Exception("CRC error")  # noqa: TRY002 - as MicroPython's driver does
            return self.celsius[address]

    class Dht:
        def __init__(self, _pin: int) -> None:
            self.fails = False

        def measure(self) -> None:
            if self.fails:
                raise Exception("checksum error")  # noqa: TRY002

        def temperature(self) -> float:
            return 21.4

        def humidity(self) -> float:
            return 48.2

    machine.OneWire, machine.DS18X20, machine.DHT22 = lambda pin: pin, Wire, Dht
    from node.drivers import dht22, ds18b20

    waits: list[float] = []
    monkeypatch.setattr("time.sleep", waits.append)

    sensor = ds18b20.make({"pin": 22})
    sensor_type: Any = sensor
    first, second = ("temperature/2861", (2106, -2), "°C"), ("temperature/2862", (-50, -2), "°C")
    assert sensor.read() == [first, second]
    wire = sensor_type._bus
    del wire.celsius[b"(a"]
    assert sensor.read() == [second], "a thermometer is its address, whatever becomes of others"
    wire.celsius = {b"(b": -0.5, b"(a": 21.0625}
    assert sensor.read() == [first, second]
    sensor_type._found = [b"c"]
    with pytest.raises(OSError, match="no DS18B20"):
        sensor.read()
    assert waits == [0.75] * 4

    named = ds18b20.make({"pin": 22, "names": {"2861": "boiler"}})
    assert [each[0] for each in named.read()] == ["temperature/boiler", "temperature/2862"]
    single: Any = ds18b20.make({"pin": 22, "single": True})
    with pytest.raises(OSError, match="2 DS18B20"):
        single.read()
    single._bus.celsius = {b"(a": 85.0}
    single._found = []
    with pytest.raises(OSError, match="no DS18B20"):
        single.read()  # which is what it says after a loss of power
    single._bus.scratch = bytes.fromhex("5005 4b46 7fff 1010 1c")
    assert single.read() == [("temperature", (8500, -2), "°C")], "a true 85"
    single._bus.scratch = bytes.fromhex("5005 4b46 7fff 0c10 1c")
    assert single.read() == [("temperature", (8500, -2), "°C")], "near the one before"

    now = 10_000
    monkeypatch.setattr("time.ticks_ms", lambda: now, raising=False)
    monkeypatch.setattr("time.ticks_diff", lambda later, earlier: later - earlier, raising=False)
    climate = dht22.make({"pin": 22})
    assert climate.read() == [("temperature", (214, -1), "°C"), ("humidity", (482, -1), "%")]
    climate_type: Any = climate
    climate_type._sensor.fails = True
    with pytest.raises(OSError, match="within 2000 ms"):
        climate.read()
    now += 2000
    with pytest.raises(OSError, match="checksum"):
        climate.read()


def test_a_pin_in_volts_and_a_chips_own_temperature(machine: Any) -> None:
    class Adc:
        def __init__(self, channel: int) -> None:
            self.value = 14021 if channel == 4 else 32768

        def read_u16(self) -> int:
            return self.value

    machine.ADC = Adc
    from node.drivers import adc, internal, simulated

    assert adc.make({"pin": 26}).read() == [("voltage", (1650, -3), "V")]
    settings = {"pin": 26, "quantity": "level", "unit": "%", "scale": 100, "offset": -15}
    assert adc.make(settings).read() == [("level", (150003, -3), "%")]
    assert internal.make({}).read() == [("temperature", (270, -1), "°C")]
    assert simulated.make({}).read()[0] == ("temperature", (2100, -2), "°C")


def test_a_bmp280_is_a_bme280_without_humidity() -> None:
    from node.drivers.bmp280 import Bmp280

    chip = Chip()
    first = struct.pack("<Hhh", 27504, 26435, -1000)
    first += struct.pack("<Hhhhhhhhh", 36477, -10685, 3024, 2855, 140, -7, 15500, -14600, 6000)
    chip.registers = {
        0xD0: b"\x58",
        0x88: first + bytes(2),
        0xF7: bytes([415148 >> 12, 415148 >> 4 & 255, 415148 << 4 & 255])
        + bytes([519888 >> 12, 519888 >> 4 & 255, 519888 << 4 & 255]),
    }
    sensor = Bmp280(chip, 0x76)
    assert sensor.read() == [
        ("temperature", (2508, -2), "°C"),
        ("pressure", (100653, -2), "hPa"),
    ], "the datasheet's example"
    assert [register for register, _ in chip.written] == [0xF4]
    chip.registers[0xD0] = b"\x60"
    with pytest.raises(OSError, match="chip 0x60, and not 0x58"):
        Bmp280(chip, 0x76).read()


def test_an_scd4x_is_started_waited_for_and_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    from node.crc8 import crc8
    from node.drivers.scd4x import MEASUREMENT, READY, START, Scd4x

    class Air(Chip):
        ready = 0

        def writeto(self, address: int, data: bytes) -> None:
            super().writeto(address, data)
            words = [500, 0x6667, 0x5EB9] if data == MEASUREMENT else [0x8000 | self.ready]
            self.answer = b"".join(
                word.to_bytes(2, "big") + bytes([crc8(word.to_bytes(2, "big"))]) for word in words
            )

    air = Air()
    waits: list[float] = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        air.ready = int(len(waits) > 8) * 6

    monkeypatch.setattr("time.sleep", sleep)
    sensor = Scd4x(air)
    assert sensor.read() == [
        ("carbon_dioxide", (500, 0), "ppm"),
        ("temperature", (2500, -2), "°C"),
        ("humidity", (3700, -2), "%"),
    ], "the datasheet's example"
    assert [data for _, data in air.written].count(START) == 1
    assert air.written[-2:] == [(-1, READY), (-1, MEASUREMENT)]
    air.ready = 0
    waits.clear()
    with pytest.raises(OSError, match="nothing was measured"):
        sensor.read()
    monkeypatch.setattr(air, "readfrom", lambda *_: b"\x80\x06\x00")
    with pytest.raises(OSError, match="check"):
        sensor.read()


def test_an_hx711_is_read_bit_by_bit(machine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    bits: list[int] = []

    class Pin:
        IN, OUT = 0, 1

        def __init__(self, number: int, _mode: int) -> None:
            self.number = number

        def value(self, level: int | None = None) -> int:
            if level is None:
                return bits.pop(0)
            return 0

    machine.Pin, machine.disable_irq = Pin, lambda: 7
    machine.enable_irq = lambda state: None if state == 7 else pytest.fail("another state")
    monkeypatch.setattr("time.sleep", lambda _: None)
    from node.drivers import hx711

    def given(raw: int) -> None:
        bits[:] = [0, *((raw >> place) & 1 for place in range(23, -1, -1)), 1]

    settings = {"pin": 22, "clock": 5, "unit": "kg", "scale": 0.001, "offset": -1.5}
    sensor = hx711.make(settings)
    given(123_456)
    assert sensor.read() == [("weight", (121_956, -3), "kg")]
    given(-2_000)
    assert sensor.read() == [("weight", (-3_500, -3), "kg")]
    given(0x7FFFFF)
    with pytest.raises(OSError, match="range"):
        sensor.read()
    bits[:] = [1] * 99
    with pytest.raises(OSError, match="no answer"):
        sensor.read()


def test_a_decimal_fits_a_frame() -> None:
    from node.decimals import decimal
    from node.frames import encode_value

    for value in (0, 1.5, -21.4567, 2_147_483.647, 2_147_484, 8_388_607, 1e12, -1e15):
        mantissa, exponent = decimal(value, 3)
        encode_value((mantissa, exponent))
        assert mantissa * 10.0**exponent == pytest.approx(value, rel=1e-6, abs=1e-3)
