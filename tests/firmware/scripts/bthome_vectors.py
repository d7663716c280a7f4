"""Prints advertisements as both Pythons encode them, those that are encrypted too."""

import sys
from binascii import hexlify, unhexlify

from node.bthome import Encrypted, Plain, groups
from node.counter import Counter

TYPE_CHECKING = False  # MicroPython has no typing module
if TYPE_CHECKING:
    from node.bthome import Reading

KEY = unhexlify("231d39c1d7cc1ab1aee224cd096db932")
ADDRESS = unhexlify("a4c138112233")
READINGS: "list[Reading]" = [
    ("temperature", (-2137, -2), "°C"),
    ("temperature_2", (215, -1), "°C"),
    ("humidity", 48.256, "%"),
    ("pressure", (100653, -2), "hPa"),
    ("contact", True, None),
    ("voltage", (33, -1), "V"),
    ("count", 65535, None),
]


def aes(block: bytes) -> bytes:
    try:
        import cryptolib  # MicroPython's
    except ImportError:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        return Cipher(algorithms.AES(KEY), modes.ECB()).encryptor().update(block)
    encrypted: bytes = cryptolib.aes(KEY, 1).encrypt(block)
    return encrypted


def main() -> None:
    for kind in (Plain(), Encrypted(aes, ADDRESS, Counter(sys.argv[1]).count)):
        for part in groups(READINGS, kind.size_max):
            print(hexlify(kind.advertisement(part)).decode())


if __name__ == "__main__":
    main()
