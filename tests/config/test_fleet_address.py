import pytest

from gateway.config.errors import ConfigurationError
from tests.support.configurations import URL, Load
from tests.support.table import table

BAD_URLS = [
    "",
    "fleet.example",
    "fleet.example:1883",
    "http://fleet.example",
    "mqtt:fleet.example",
    "mqtt://",
    "mqtt://:1883",
    "mqtt://fleet.example:0",
    "mqtt://fleet.example:65536",
    "mqtt://fleet.example:abc",
    "mqtt://fleet.example:-1",
    "mqtt://[::1",
    "mqtt://fleet example",
    "mqtt://fleet.example\\n",
    "mqtt://anna:secret@fleet.example",
    "mqtt://anna@fleet.example",
    "mqtt://fleet.example/topic",
    "mqtt://fleet.example?x=1",
    "mqtt://fleet.example#x",
    "ws://fleet.example/mqtt#x",
    "wss://anna@fleet.example/mqtt",
    "mqtt://${FLEET}",
    "${FLEET}",
]


@table("url", BAD_URLS)
def test_an_address_of_the_fleet_that_is_none(read: Load, url: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        read(f'[uplink]\nurl = "{url}"')
    assert raised.value.key == "uplink.url"
    assert raised.value.allowed.startswith(URL)
    assert ("TIDEGATE__UPLINK__URL" in raised.value.allowed) is ("${" in url)


@pytest.mark.parametrize(
    "url",
    ["mqtt://fleet.example", "mqtts://10.0.0.1:8883/", "mqtt://[fe80::1]:1", "mqtt://a:65535"],
)
def test_addresses_of_the_fleet(read: Load, url: str) -> None:
    uplink = read(f'[uplink]\nurl = "{url}"').uplinks[0]
    assert uplink.url == url


def test_a_password_in_an_address_is_not_repeated(read: Load) -> None:
    with pytest.raises(ConfigurationError) as raised:
        read('[uplink]\nurl = "mqtt://barn:s3cret@fleet:1883"\n')
    assert "mqtt://***@fleet:1883" in str(raised.value)
    assert "s3cret" not in str(raised.value)
