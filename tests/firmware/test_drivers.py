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


T1, T2, T3 = 26_203, 26_519, 3
P = (35_008, -10_284, 88, 9_692, -202, 30, 24, -516, -3_469, 30)
H = (794, 1_007, 0, 45, 20, 120, -100)
G1, G2, G3 = -30, -5_969, 18
"""Calibration of a chip."""

RAW_T, RAW_P, RAW_H, RAW_GAS = 506_000, 370_000, 22_000, 600


def bme680(variant: int = 0, range_: int = 4, gas: int = 0x30) -> Chip:
    p1, p2, p3, p4, p5, p6, p7, p8, p9, p10 = P
    h1, h2, *h = H
    field = bytes([0x80, 0, *_twenty_bits(RAW_P), *_twenty_bits(RAW_T), RAW_H >> 8, RAW_H & 255])
    measured = bytes([RAW_GAS >> 2, RAW_GAS << 6 & 0xC0 | gas | range_])
    chip = Chip()
    chip.registers = {
        0xD0: b"\x61",
        0xF0: bytes([variant]),
        0x00: b"\x2e",
        0x02: b"\x10",
        0x04: b"\xe0",
        0x8A: struct.pack("<hbBHhbBhhbb", T2, T3, 0, p1, p2, p3, 0, p4, p5, p7, p6)
        + bytes(2)
        + struct.pack("<hhB", p8, p9, p10),
        0xE1: bytes([h2 >> 4, h2 << 4 & 0xF0 | h1 & 0x0F, h1 >> 4])
        + struct.pack("<bbbBbHhbb", *h, T1, G2, G1, G3),
        0x1D: field + bytes(3 + 2 * variant) + measured + bytes(2),
    }
    return chip


def _twenty_bits(raw: int) -> bytes:
    return bytes([raw >> 12, raw >> 4 & 255, raw << 4 & 255])


def expected_air() -> tuple[float, float, float]:
    """Return °C, % and Pa by the whole numbers of the datasheet's other formulas (3.3)."""
    first = (RAW_T >> 3) - (T1 << 1)
    fine = (first * T2 >> 11) + (((first >> 1) ** 2 >> 12) * (T3 << 4) >> 14)
    celsius = (fine * 5 + 128) >> 8
    p1, p2, p3, p4, p5, p6, p7, p8, p9, p10 = P
    var1 = (fine >> 1) - 64_000
    var2 = (((var1 >> 2) ** 2 >> 11) * p6) >> 2
    var2 = ((var2 + (var1 * p5 << 1)) >> 2) + (p4 << 16)
    var1 = (((((var1 >> 2) ** 2) >> 13) * (p3 << 5)) >> 3) + (p2 * var1 >> 1)
    var1 = (32_768 + (var1 >> 18)) * p1 >> 15
    pascal = ((1_048_576 - RAW_P - (var2 >> 12)) * 3_125 << 1) // var1
    more = (p9 * ((pascal >> 3) ** 2 >> 13) >> 12) + ((pascal >> 2) * p8 >> 13)
    more += (pascal >> 8) ** 3 * p10 >> 17
    pascal += (more + (p7 << 7)) >> 4
    h1, h2, h3, h4, h5, h6, h7 = H
    wet = RAW_H - (h1 * 16) - ((celsius * h3 // 100) >> 1)
    gain = (celsius * h4 // 100) + ((celsius * (celsius * h5 // 100) >> 6) // 100) + (1 << 14)
    var3 = wet * (h2 * gain >> 10)
    var6 = (((h6 << 7) + celsius * h7 // 100 >> 4) * (((var3 >> 14) ** 2) >> 10)) >> 1
    return celsius / 100, ((var3 + var6 >> 10) * 1_000 >> 12) / 1_000, pascal


def test_a_bme680_gives_what_the_datasheets_two_ways_of_counting_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    from node.drivers.bme680 import Bme680

    chip = bme680()
    temperature, humidity, pressure, gas = Bme680(chip, 0x76).read()
    celsius, percent, pascal = expected_air()
    assert 10 < celsius < 40
    assert 20 < percent < 80
    assert 80_000 < pascal < 110_000
    for (name, (mantissa, exponent), unit), (expected, given) in zip(
        (temperature, humidity, pressure),
        ((celsius * 100, "°C"), (percent * 100, "%"), (pascal, "hPa")),
        strict=True,
    ):
        assert (exponent, unit) == (-2, given), name
        assert mantissa == pytest.approx(expected, abs=4), name
    step = 1_340 + 5 * -2
    ohms = 1 / (1.001 * 0.000000125 * 16 * ((RAW_GAS - 512) / step + 1))
    assert (gas[0], gas[2]) == ("gas_resistance", "Ω")
    assert gas[1][0] == pytest.approx(ohms, abs=1)
    assert chip.written[-1] == (0x74, b"\x25")
    assert dict(chip.written)[0x71] == b"\x10"


def test_a_bme680_without_a_hot_heater_and_a_bme688(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    from node.drivers.bme680 import Bme680

    cold = [quantity for quantity, _, _ in Bme680(bme680(gas=0x20), 0x76).read()]
    assert cold == ["temperature", "humidity", "pressure"]
    newer = bme680(variant=1)
    ohms = 1e6 * (262_144 >> 4) / (4_096 + (RAW_GAS - 512) * 3)
    assert Bme680(newer, 0x76).read()[-1] == ("gas_resistance", (round(ohms), 0), "Ω")
    assert dict(newer.written)[0x71] == b"\x20"
    newer.registers[0x1D] = bytes(17)
    with pytest.raises(OSError, match="does not end"):
        Bme680(newer, 0x76).read()
    newer.registers[0xD0] = b"\x60"
    with pytest.raises(OSError, match="chip 0x60, and not 0x61"):
        Bme680(newer, 0x76).read()


def test_a_vl53l0x_is_started_and_its_status_honoured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    from node.drivers.vl53l0x import Vl53l0x

    chip = Chip()
    near = bytes([11 << 3, *bytes(9), 0x03, 0xE8])
    chip.registers = {0xC0: b"\xee", 0x89: b"\x10", 0x91: b"\x3c", 0x13: b"\x44", 0x14: near}
    sensor = Vl53l0x(chip)
    for _ in range(2):
        assert sensor.read() == [("distance", (1000, 0), "mm")]
    assert chip.written[0] == (0x89, b"\x11")
    assert chip.written.count((0x91, b"\x3c")) == 2
    assert chip.written[-2:] == [(0x00, b"\x01"), (0x0B, b"\x01")]
    chip.registers[0x14] = bytes([4 << 3, *bytes(9), 0x1F, 0xFE])
    with pytest.raises(OSError, match="nothing is near enough"):
        sensor.read()
    chip.registers[0x13] = b"\x40"
    with pytest.raises(OSError, match="does not end"):
        sensor.read()
    chip.registers[0xC0] = b"\x00"
    with pytest.raises(OSError, match="model 0x00"):
        Vl53l0x(chip).read()


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
