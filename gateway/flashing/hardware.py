"""The boards and sensors that `tidegate firmware new` knows, with suggested pins."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BoardKind:
    """A kind of board: its title, and free pins with the required functions.

    `buses` are the data and the clock pin of its I2C buses, `pins` those of other sensors.
    """

    title: str
    buses: tuple[tuple[int, int], ...]
    pins: tuple[int, ...]
    adc: tuple[int, ...]


PICO_PINS = (((4, 5), (6, 7)), (22, 21, 20, 19, 18, 17, 16, 15), (26, 27, 28))

BOARDS = {
    "pico": BoardKind("Raspberry Pi Pico", *PICO_PINS),
    "pico_w": BoardKind("Raspberry Pi Pico W", *PICO_PINS),
    "pico2": BoardKind("Raspberry Pi Pico 2", *PICO_PINS),
    "pico2_w": BoardKind("Raspberry Pi Pico 2 W", *PICO_PINS),
    "esp32": BoardKind(
        "ESP32", ((21, 22), (25, 26)), (4, 13, 14, 16, 17, 18, 19, 23), (34, 35, 32, 33)
    ),
    "esp32_c3": BoardKind("ESP32-C3", ((8, 9),), (5, 6, 7, 10), (0, 1, 2, 3, 4)),
    "esp32_s3": BoardKind(
        "ESP32-S3", ((8, 9), (17, 18)), (5, 6, 7, 10, 11, 12, 13, 14), (1, 2, 3, 4)
    ),
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
        "a distance up to 2 m, by light",
        ("sda", "scl"),
        ("i2c",),
        (0x29,),
        quantities=("distance",),
    ),
    "scd4x": SensorKind(
        "carbon dioxide, temperature and humidity",
        ("sda", "scl"),
        ("i2c",),
        (0x62,),
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
