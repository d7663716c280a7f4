"""Readings as a Bluetooth LE advertisement in the format BTHome, version 2, plain or encrypted."""

from . import const

TYPE_CHECKING = False  # MicroPython has no typing module
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .loop import Value

    Reading = tuple[str, Value, str | None]

FLAGS = b"\x02\x01\x06"
UUID = b"\xd2\xfc"
PLAIN, ENCRYPTED = 0x40, 0x41
"""Device information: version 2, sent again and again."""

PACKET_ID = b"\x00"

OBJECT_BYTES_MAX = 31 - len(FLAGS) - 5
"""Bytes of objects in an advertisement: flags and the head of the service data take the others."""

_CHECK_BYTES = const(4)
_COUNTER_BYTES = const(4)

_OBJECTS = {  # number, bytes, whether signed, power of ten of a step, unit
    "battery": (0x01, 1, False, 0, "%"),
    "temperature": (0x02, 2, True, -2, "°C"),
    "humidity": (0x03, 2, False, -2, "%"),
    "pressure": (0x04, 3, False, -2, "hPa"),
    "illuminance": (0x05, 3, False, -2, "lx"),
    "mass": (0x06, 2, False, -2, "kg"),
    "energy": (0x0A, 3, False, -3, "kWh"),
    "power": (0x0B, 3, False, -2, "W"),
    "voltage": (0x0C, 2, False, -3, "V"),
    "particulates": (0x0D, 2, False, 0, "µg/m³"),
    "contact": (0x11, 1, False, 0, None),
    "carbon_dioxide": (0x12, 2, False, 0, "ppm"),
    "moisture": (0x14, 2, False, -2, "%"),
    "motion": (0x21, 1, False, 0, None),
    "count": (0x3D, 2, False, 0, None),
    "distance": (0x40, 2, False, 0, "mm"),
    "current": (0x43, 2, False, -3, "A"),
    "speed": (0x44, 2, False, -2, "m/s"),
}


def encode_object(quantity: str, value: "Value", unit: "str | None") -> "bytes | None":
    """Return number and value; None for what the format has no number or no room for.

    A further sensor of one kind (`temperature/boiler`, `temperature_2`) has the number of the
    first: the format tells them apart only by their order.
    """
    quantity = quantity.partition("/")[0]
    name, _, number = quantity.rpartition("_")
    known = _OBJECTS.get(name if number.isdigit() else quantity)
    if known is None or isinstance(value, str):
        return None
    kind, size, signed, exponent, known_unit = known
    if unit != known_unit:
        return None
    steps = _steps(value, exponent)
    lowest = -(1 << 8 * size - 1) if signed else 0
    if steps is None or not lowest <= steps < lowest + (1 << 8 * size):
        return None
    return bytes([kind]) + (steps & (1 << 8 * size) - 1).to_bytes(size, "little")


def _steps(value: "bool | int | float | tuple[int, int]", exponent: int) -> "int | None":
    """Return how many times ten to the exponent a value is, rounded; None for no number."""
    mantissa, ten = value if isinstance(value, tuple) else (value, 0)
    ten -= exponent
    if isinstance(mantissa, float):
        return round(mantissa * 10**ten) if abs(mantissa) < 1e9 else None
    if ten >= 0:
        whole: int = int(mantissa) * 10**ten
        return whole
    step: int = 10**-ten
    return (int(mantissa) + step // 2) // step


def groups(readings: "Sequence[Reading]", size_max: int) -> "list[bytes]":
    """Return the objects of all that the format knows, by rising number, as they fit together."""
    found = []
    for place, reading in enumerate(readings):
        each = encode_object(reading[0], reading[1], reading[2])
        if each is not None:
            found.append((each[0], place, each))
    sets = [b""]
    for _, _, each in sorted(found):
        if len(sets[-1]) + len(each) > size_max:
            sets.append(b"")
        sets[-1] += each
    return sets if sets[0] else []


def advertisement(information: int, content: bytes) -> bytes:
    """Return what is advertised."""
    data = UUID + bytes([information]) + content
    return FLAGS + bytes([1 + len(data), 0x16]) + data


class Plain:
    """Advertisements that everybody can read; a number tells which ones are the same."""

    size_max = OBJECT_BYTES_MAX - 2

    def __init__(self) -> None:
        self._packet = 0

    def advertisement(self, objects: bytes) -> bytes:
        """Return the next one."""
        self._packet = self._packet + 1 & 0xFF
        return advertisement(PLAIN, PACKET_ID + bytes([self._packet]) + objects)


class Encrypted:
    """Advertisements by AES-CCM for those who have the key.

    `cipher` is AES of one block under the key, `address` the board's Bluetooth address; `count`
    gives numbers of 32 bits that never come twice under the key.
    """

    size_max = OBJECT_BYTES_MAX - _COUNTER_BYTES - _CHECK_BYTES

    def __init__(
        self, cipher: "Callable[[bytes], bytes]", address: bytes, count: "Callable[[], int]"
    ) -> None:
        self._cipher = cipher
        self._address = address
        self._count = count

    def advertisement(self, objects: bytes) -> bytes:
        """Return the next one."""
        counter = self._count().to_bytes(_COUNTER_BYTES, "little")
        nonce = self._address + UUID + bytes([ENCRYPTED]) + counter
        encrypted, check = encrypt(self._cipher, nonce, objects)
        return advertisement(ENCRYPTED, encrypted + counter + check)


def encrypt(
    cipher: "Callable[[bytes], bytes]", nonce: bytes, content: bytes
) -> "tuple[bytes, bytes]":
    """Return content of 1 to 16 bytes, encrypted, and its check (RFC 3610, L = 2, M = 4)."""
    first = b"\x09" + nonce + len(content).to_bytes(2, "big")
    check = cipher(_xor(cipher(first), content + bytes(16 - len(content))))
    counted = [cipher(b"\x01" + nonce + bytes([0, number])) for number in range(2)]
    return _xor(content, counted[1]), _xor(check, counted[0])[:_CHECK_BYTES]


def _xor(first: bytes, second: bytes) -> bytes:
    return bytes([first[index] ^ second[index] for index in range(min(len(first), len(second)))])
