"""The settings file of a node: written with comments, read with every mistake told."""

import itertools
import ssl
from base64 import b64encode
from pathlib import Path

import pytest

from gateway.config.errors import ConfigurationError
from gateway.flashing.hardware import BOARDS, SENSORS
from gateway.flashing.new_settings import new_settings
from gateway.flashing.settings import SENSORS_MAX, board_settings, read_settings
from tests.support.nodes.micropython import FIRMWARE
from tests.support.processes.certificates import Authority
from tests.support.table import table

HEAD = 'board = "pico"\nname = "n1"\n'
SIMULATED = '[[sensor]]\ndriver = "simulated"\n'


def read(folder: Path, text: str) -> dict[str, object]:
    file = folder / "node.toml"
    file.write_text(text)
    return board_settings(read_settings(file))


def test_each_board_and_sensor_gives_settings_without_a_mistake(tmp_path: Path) -> None:
    for board, sensor in itertools.product(BOARDS, SENSORS):
        text = new_settings(board, [sensor], "n1", "node.toml")
        assert text.count("#") > 8
        settings = read(tmp_path, text)
        assert settings["name"] == "n1"
        assert [each["driver"] for each in settings["sensors"]] == [sensor]  # type: ignore[attr-defined]
    for some in (list(SENSORS)[:SENSORS_MAX], list(SENSORS)[-SENSORS_MAX:]):
        several = read(tmp_path, new_settings("pico", some, "n1", "node.toml"))
        assert len(several["sensors"]) == SENSORS_MAX  # type: ignore[arg-type]  # a list


def test_each_sensor_has_its_driver_on_the_board() -> None:
    drivers = {file.stem for file in (FIRMWARE / "node" / "drivers").glob("*.py")}
    assert drivers - {"__init__"} == set(SENSORS)


def test_what_the_board_reads(tmp_path: Path) -> None:
    text = (
        HEAD + 'interval = 0.5\nlink = "uart"\nuart = 0\nbaud = 9600\n'
        '[[sensor]]\ndriver = "bme280"\nsda = 4\nscl = 5\naddress = 0x76\n'
    )
    assert read(tmp_path, text) == {
        "name": "n1",
        "interval_ms": 500,
        "link": "uart",
        "uart": 0,
        "baud": 9600,
        "sensors": [{"driver": "bme280", "sda": 4, "scl": 5, "address": 0x76, "i2c": 0}],
    }


def test_room_on_the_flash_is_given_in_kib(tmp_path: Path) -> None:
    assert read(tmp_path, HEAD + "spill = 256\n" + SIMULATED)["spill_bytes"] == 262_144


def test_the_key_of_advertisements_reaches_the_board(tmp_path: Path) -> None:
    key = "ab" * 16
    settings = read(tmp_path, HEAD + f'link = "ble"\nkey = "{key}"\n' + SIMULATED)
    assert (settings["link"], settings["key"]) == ("ble", key)


def test_the_network_and_the_broker_reach_the_board(tmp_path: Path) -> None:
    tables = '[wifi]\nssid = "barn"\npassword = "hay"\n[broker]\nhost = "192.168.1.2"\n'
    settings = read(tmp_path, HEAD + 'link = "mqtt"\n' + tables + SIMULATED)
    assert settings["wifi"] == {"ssid": "barn", "password": "hay"}
    assert settings["broker"] == {"host": "192.168.1.2"}


def test_the_certificate_of_the_broker_reaches_the_board(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    tables = '[wifi]\nssid = "barn"\npassword = "hay"\n[broker]\nhost = "gateway"\nca_file = "%s"\n'

    def broker(file: str) -> object:
        return read(tmp_path, HEAD + 'link = "mqtt"\n' + tables % file + SIMULATED)["broker"]

    pem = Path(authority.ca_file).read_text()
    der = b64encode(ssl.PEM_cert_to_DER_cert(pem)).decode()
    assert broker(authority.ca_file) == {"host": "gateway", "ca": der}
    wrong = {
        "no such file": None,
        "a PEM file": b"\xff",
        "one certificate .0 are in it": b"nothing",
        "one certificate .2 are in it": pem.encode() * 2,
        "that ends with its certificate": pem.encode()[:-30],
        "at most 2048 bytes": pem.encode().replace(b"\n", b"\n" + b"AAAA" * 900 + b"\n", 1),
    }
    for reported, content in wrong.items():
        file = tmp_path / "wrong.pem"
        file.unlink(missing_ok=True)
        if content is not None:
            file.write_bytes(content)
        with pytest.raises(ConfigurationError, match=reported if content else "can be read"):
            broker(str(file))


@table(
    "text, expected",
    [
        ("", "board: must be given"),
        (HEAD, "sensor: must be given"),
        (HEAD + "[[sensor]]\n" * 9, "sensor = 9 is not allowed: 1 to 8 tables"),
        ('board = "picco"\nname = "n1"\n' + SIMULATED, 'did you mean "pico"?'),
        (HEAD.replace("n1", "a/b") + SIMULATED, "without /, + and #"),
        (HEAD.replace("n1", "ü" * 33) + SIMULATED, "1 to 64 bytes"),
        (HEAD + "interval = 0\n" + SIMULATED, "interval = 0 is not allowed"),
        (HEAD + "baud = 9600\n" + SIMULATED, 'has no meaning without link = "uart"'),
        (HEAD + 'link = "mqtt"\n' + SIMULATED, "broker: must be given"),
        (HEAD + '[wifi]\nssid = "a"\npassword = "b"\n' + SIMULATED, 'without link = "mqtt"'),
        (HEAD + 'link = "ble"\nkey = "12"\n' + SIMULATED, "32 hexadecimal digits"),
        (HEAD + f'key = "{"ab" * 16}"\n' + SIMULATED, 'has no meaning without link = "ble"'),
        (HEAD + SIMULATED + "pin = 3\n", "sensor[0].pin = 3 is not allowed: has no meaning"),
        (HEAD + '[[sensor]]\ndriver = "dht22"\n', "sensor[0].pin: must be given"),
        (HEAD + '[[sensor]]\ndriver = "dht22"\npin = 99\n', "from 0 to 48"),
        (
            HEAD + '[[sensor]]\ndriver = "bme280"\nsda = 4\nscl = 5\naddress = 0x44\n',
            "0x76 or 0x77 with driver",
        ),
        ("board =", "not TOML"),
    ],
)
def test_a_mistake_is_told(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        read(tmp_path, text)
    assert expected in str(error.value)


INTERNAL = '[[sensor]]\ndriver = "internal"\n'
WIRE = '[[sensor]]\ndriver = "ds18b20"\npin = 22\n'

LIGHT = '[[sensor]]\ndriver = "vl53l0x"\nsda = 4\nscl = 5\n'

SERIES: list[tuple[str, str]] = [
    (INTERNAL + SIMULATED, "sensor[1].name"),
    (INTERNAL + 'name = "chip"\n' + SIMULATED + 'name = "chip"\n', "temperature/chip"),
    (INTERNAL + 'name = "set"\n', "set"),
    (WIRE + "single = true\n" + INTERNAL, "sensor[0] measures temperature"),
    (WIRE + 'single = true\nnames = { 28ff641e8216047c = "a" }\n', "names are for"),
    (WIRE + 'names = { 28 = "a" }\n', "16 hexadecimal digits"),
    (INTERNAL + 'name = "a"\n' + WIRE + 'names = { 28ff641e8216047c = "a" }\n', "temperature/a"),
    (WIRE + WIRE, "not pin 22: sensor[0] is wired to it"),
    (LIGHT + LIGHT + 'name = "b"\n', "not address 0x29 of I2C bus 0"),
    (WIRE + 'names = { 28ff641e8216047c = "a", 28ff641e8216047d = "a" }\n', "of its own"),
    ('interval = 1\n[[sensor]]\ndriver = "dht22"\npin = 4\n', "at least 2"),
]


@table("text, reason", SERIES)
def test_two_sensors_of_one_series_are_refused(text: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as reported:
        read(tmp_path, HEAD + text)
    assert reason in str(reported.value)


def test_sensors_with_names_and_thermometers_with_addresses(tmp_path: Path) -> None:
    text = HEAD + INTERNAL + 'name = "chip"\n' + SIMULATED
    text += WIRE + 'names = { 28FF641E8216047C = "boiler" }\n'
    assert read(tmp_path, text)["sensors"] == [
        {"driver": "internal", "name": "chip"},
        {"driver": "simulated"},
        {"driver": "ds18b20", "pin": 22, "names": {"28ff641e8216047c": "boiler"}},
    ]
