"""The boards and sensors that `tidegate firmware new` knows, with suggested pins."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BoardKind:
    """A kind of board: its title, and free pins with the required functions."""

    title: str
    sda: int
    scl: int
    pin: int
    adc: int


BOARDS = {
    "pico": BoardKind("Raspberry Pi Pico", 4, 5, 22, 26),
    "pico_w": BoardKind("Raspberry Pi Pico W", 4, 5, 22, 26),
    "pico2": BoardKind("Raspberry Pi Pico 2", 4, 5, 22, 26),
    "pico2_w": BoardKind("Raspberry Pi Pico 2 W", 4, 5, 22, 26),
    "esp32": BoardKind("ESP32", 21, 22, 4, 34),
    "esp32_c3": BoardKind("ESP32-C3", 8, 9, 5, 0),
    "esp32_s3": BoardKind("ESP32-S3", 8, 9, 5, 1),
}


@dataclass(frozen=True, slots=True)
class SensorKind:
    """A driver: what it reads, and the keys that its table must have.

    `quantities` are those that need a name to distinguish them from another sensor's; `rest` is the
    least number of seconds between two samples.
    """

    title: str
    keys: tuple[str, ...]
    optional: tuple[str, ...] = ()
    addresses: tuple[int, ...] = ()
    quantities: tuple[str, ...] = ()
    rest: float = 0.0
    chosen: str = ""
    """Its quantities where the settings give no other."""


CLIMATE = ("temperature", "humidity")
AIR = (*CLIMATE, "pressure")

SENSORS = {
    "simulated": SensorKind(
        "temperature, humidity and pressure that are made up", (), quantities=AIR
    ),
    "internal": SensorKind("the temperature of the board's chip", (), quantities=("temperature",)),
    "adc": SensorKind(
        "a voltage at an analog pin",
        ("pin",),
        ("quantity", "unit", "scale", "offset"),
        chosen="voltage",
    ),
    "ds18b20": SensorKind("temperature; one or more on one wire", ("pin",), ("single", "names")),
    "dht22": SensorKind("temperature and humidity", ("pin",), quantities=CLIMATE, rest=2.0),
    "bme280": SensorKind(
        "temperature, humidity and pressure",
        ("sda", "scl", "address"),
        ("i2c",),
        (0x76, 0x77),
        AIR,
    ),
    "bmp280": SensorKind(
        "temperature and pressure",
        ("sda", "scl", "address"),
        ("i2c",),
        (0x76, 0x77),
        ("temperature", "pressure"),
    ),
    "bme680": SensorKind(
        "temperature, humidity, pressure and the resistance of a gas sensor",
        ("sda", "scl", "address"),
        ("i2c",),
        (0x76, 0x77),
        (*AIR, "gas_resistance"),
    ),
    "vl53l0x": SensorKind(
        "a distance up to 2 m, by light", ("sda", "scl"), ("i2c",), quantities=("distance",)
    ),
    "scd4x": SensorKind(
        "carbon dioxide, temperature and humidity",
        ("sda", "scl"),
        ("i2c",),
        quantities=("carbon_dioxide", *CLIMATE),
        rest=5.0,
    ),
    "hx711": SensorKind(
        "a load cell, such as a scale's",
        ("pin", "clock"),
        ("quantity", "unit", "scale", "offset"),
        chosen="weight",
    ),
    "sht3x": SensorKind(
        "temperature and humidity", ("sda", "scl", "address"), ("i2c",), (0x44, 0x45), CLIMATE
    ),
}
