"""A sensor whose readings are advertised by Bluetooth LE as well."""

from binascii import unhexlify

import bluetooth

from . import const
from .bthome import Encrypted, Plain, groups
from .counter import Counter

TYPE_CHECKING = False  # MicroPython has no typing module
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .loop import Sensor, Value

_INTERVAL_US = const(500000)
"""Between two sendings of an advertisement."""

_NAME_MAX = const(29)
"""Bytes of the name in the answer to a scan."""


class Advertised:
    """Reads `sensor` and advertises what it says under `name`, encrypted if there is a `key`.

    The key is 32 hexadecimal digits, and `counter` the file that keeps its numbers from coming
    twice. Readings that do not fit one advertisement are advertised in turn, a part at each
    sample. OSError where the numbers cannot be kept.
    """

    def __init__(self, sensor: "Sensor", name: str, key: "str | None", counter: str) -> None:
        self._sensor = sensor
        self._name = name.encode()[:_NAME_MAX]
        self._ble = bluetooth.BLE()
        self._ble.active(True)  # noqa: FBT003 - the board takes it by place alone
        self._turn = 0
        self._kind: Plain | Encrypted = Plain()
        if key is not None:
            self._kind = self._encrypted(unhexlify(key), counter)

    def read(self) -> "Sequence[tuple[str, Value, str | None]]":
        """Return the readings, once the advertisement says them."""
        readings = self._sensor.read()
        parts = groups(readings, self._kind.size_max)
        if parts:
            self._turn += 1
            data = self._kind.advertisement(parts[self._turn % len(parts)])
            name = bytes([1 + len(self._name), 0x09]) + self._name
            self._ble.gap_advertise(_INTERVAL_US, data, resp_data=name, connectable=False)
        return readings

    def _encrypted(self, key: bytes, counter: str) -> Encrypted:
        import cryptolib

        # ECB; an object of its own for each block, because some ports keep a state in it
        def cipher(block: bytes) -> bytes:
            encrypted: bytes = cryptolib.aes(key, 1).encrypt(block)
            return encrypted

        return Encrypted(cipher, bytes(self._ble.config("mac")[1]), Counter(counter).count)
