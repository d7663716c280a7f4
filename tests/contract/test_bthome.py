"""What a node advertises, encrypted or not, becomes readings of the gateway's BLE bridge."""

from pathlib import Path
from typing import Any

from node.bthome import Encrypted, Plain, groups
from node.counter import Counter

from gateway.bridges.ble.ble_bridge import BleBridge
from gateway.bridges.ble.ble_settings import BleSettings
from gateway.bridges.ble.decoders import Advertisement
from gateway.config.reader import Reader
from tests.firmware.scripts.bthome_vectors import ADDRESS, KEY, READINGS, aes
from tests.support.nodes.bridges import Gateway

SERVICE = "0000fcd2-0000-1000-8000-00805f9b34fb"
DEVICE = ":".join(f"{byte:02x}" for byte in ADDRESS)
EXPECTED = {
    "temperature_1": -21.37,
    "temperature_2": 21.5,
    "humidity": 48.26,
    "pressure": 1006.53,
    "voltage": 3.3,
    "count": 65_535,
    "opening": True,
}


class Air:
    """Carries advertisements to a bridge of its own, whose configuration has this device."""

    def __init__(self, **device: str) -> None:
        self.gateway = Gateway.make()
        table = {"address": DEVICE, "node": "barn1", **device}
        settings = Reader("tidegate.toml").read(BleSettings, {"device": [table], "interval": 0.0})
        self._bridge = BleBridge(settings, self.gateway.host("ble", "hci0"))
        self._time = 0.0

    def carry(self, data: bytes) -> dict[str, Any]:
        """Return the readings of the node by their quantity, without the radio's own."""
        before = len(self.gateway.broker.readings)
        self._time += 1
        said = {SERVICE: data[7:]}
        self._bridge.on_advertisement(
            Advertisement(DEVICE.upper(), None, -60, said, {}, [], self._time)
        )
        new = self.gateway.broker.readings[before:]
        found = {topic.removeprefix("sensors/barn1/"): body["value"] for topic, body in new}
        found.pop("signal_strength", None)
        return found

    def count(self, figure: str) -> int:
        """Return how often the bridge refused something for this reason."""
        return self.gateway.counters.count(f"tidegate/ble/{figure}")


def advertised(kind: Plain | Encrypted) -> list[bytes]:
    return [kind.advertisement(part) for part in groups(READINGS, kind.size_max)]


def sealed(counter: Path) -> Encrypted:
    """Return what a board has after a start; `counter` is on its flash."""
    return Encrypted(aes, ADDRESS, Counter(str(counter)).count)


def heard(air: Air, advertisements: list[bytes]) -> dict[str, Any]:
    return {name: value for each in advertisements for name, value in air.carry(each).items()}


def test_plain_readings_arrive() -> None:
    assert heard(Air(), advertised(Plain())) == EXPECTED


def test_encrypted_readings_arrive_once_and_after_each_start(tmp_path: Path) -> None:
    air = Air(key=KEY.hex())
    first = advertised(sealed(tmp_path / "counter"))
    assert heard(air, first) == EXPECTED
    assert heard(air, first) == {}, "they were recorded, and are played again"
    assert air.count("duplicates") == len(first)
    forged = [each[:-8] + bytes([255, 255, 255, 255]) + each[-4:] for each in first]
    assert heard(air, forged + first) == {}, "behind wrong ones with a high counter too"
    for start in range(2):
        assert heard(air, advertised(sealed(tmp_path / "counter"))) == EXPECTED, start


def test_who_has_no_key_or_another_one_hears_nothing(tmp_path: Path) -> None:
    advertisements = advertised(sealed(tmp_path / "counter"))
    for air in (Air(), Air(key="00" * 16)):
        assert heard(air, advertisements) == {}
        assert air.count("undecrypted") == len(advertisements)
    air = Air(key=KEY.hex())
    changed = advertisements[0][:9] + bytes([advertisements[0][9] ^ 1]) + advertisements[0][10:]
    assert heard(air, [changed]) == {}
    assert heard(air, advertisements) == EXPECTED
