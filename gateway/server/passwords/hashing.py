"""Hashed passwords: scrypt as `tidegate user` writes it, and both kinds of `mosquitto_passwd`.

The hashes are those of Python's `hashlib`, which are OpenSSL's.
"""

import base64
import binascii
import hashlib
import hmac
import os
from dataclasses import dataclass

MAXIMUM_ITERATIONS = 1_000_000
"""The most rounds of PBKDF2 for one check: seconds on a small board."""

HASH_SIZE = 64
"""Bytes of a SHA-512 hash."""

COST = 14
"""The binary logarithm of scrypt's N for new passwords: 16 MiB, and 40 ms on a fast core."""

MAXIMUM_COST = 17
BLOCKS, LANES = 8, 1
"""scrypt's r and p (RFC 7914), the only ones that are supported."""

SALT_SIZE, KEY_SIZE = 16, 32

ALLOWED = (
    "user:$scrypt$ln=14,r=8,p=1$<salt>$<hash> as tidegate user writes it, or"
    " user:$7$<iterations>$<salt>$<hash> or user:$6$<salt>$<hash>, as"
    " mosquitto_passwd -H sha512-pbkdf2 writes it"
)


@dataclass(slots=True, frozen=True)
class Password:
    """A salted hash of one of the `kind`s "scrypt", "7" and "6".

    `cost` is the logarithm of scrypt's N, PBKDF2's iterations, or 0 for one plain SHA-512.
    """

    kind: str
    cost: int
    salt: bytes
    hashed: bytes

    def check(self, password: bytes) -> bool:
        """Return whether this is the password, in a time that doesn't depend on the answer."""
        if self.kind == "scrypt":
            hashed = _scrypt(password, self.salt, self.cost)
        elif self.kind == "7":
            hashed = hashlib.pbkdf2_hmac("sha512", password, self.salt, self.cost)
        else:
            hashed = hashlib.sha512(password + self.salt).digest()
        return hmac.compare_digest(hashed, self.hashed)

    @property
    def description(self) -> str:
        """What it is, for people."""
        if self.kind == "scrypt":
            return f"scrypt, N = 2^{self.cost}"
        return f"PBKDF2, {self.cost} rounds" if self.kind == "7" else "SHA-512, which is weak"

    @property
    def work(self) -> float:
        """The number of PBKDF2 rounds that would take about as long as one check."""
        return 2.0**self.cost * 2 if self.kind == "scrypt" else self.cost


def hash_password(password: bytes, cost: int = COST) -> str:
    """Return a password hash in the format of a password file."""
    salt = os.urandom(SALT_SIZE)
    hashed = _scrypt(password, salt, cost)
    return f"$scrypt$ln={cost},r={BLOCKS},p={LANES}${_text(salt)}${_text(hashed)}"


def parse(hashed: str) -> Password | None:
    """Return the password that a text describes; None if it has another form."""
    match hashed.split("$"):
        case ["", "scrypt", parameters, salt, digest]:
            kind, cost, size = "scrypt", _cost(parameters), KEY_SIZE
        case ["", "7", iterations, salt, digest]:
            kind, cost, size = "7", _iterations(iterations), HASH_SIZE
        case ["", "6", salt, digest]:
            kind, cost, size = "6", 0, HASH_SIZE
        case _:
            return None
    salt_bytes, digest_bytes = _bytes(salt), _bytes(digest)
    if cost is None or not salt_bytes or len(digest_bytes) != size:
        return None
    return Password(kind, cost, salt_bytes, digest_bytes)


def _scrypt(password: bytes, salt: bytes, cost: int) -> bytes:
    memory = 128 * BLOCKS * (2**cost + LANES + 2)  # bytes, as OpenSSL counts them
    return hashlib.scrypt(
        password, salt=salt, n=2**cost, r=BLOCKS, p=LANES, maxmem=memory, dklen=KEY_SIZE
    )


def _cost(parameters: str) -> int | None:
    found = parameters.removeprefix("ln=").removesuffix(f",r={BLOCKS},p={LANES}")
    if f"ln={found},r={BLOCKS},p={LANES}" != parameters:
        return None
    cost = _number(found)
    return cost if cost is not None and 1 <= cost <= MAXIMUM_COST else None


def _iterations(text: str) -> int | None:
    iterations = _number(text)
    return iterations if iterations and iterations <= MAXIMUM_ITERATIONS else None


def _number(text: str) -> int | None:
    short = len(text) <= len(str(MAXIMUM_ITERATIONS))
    return int(text) if text.isascii() and text.isdigit() and short else None


def _text(data: bytes) -> str:
    """Return base64 without its padding, as in the `$scrypt$` format."""
    return base64.b64encode(data).decode().rstrip("=")


def _bytes(text: str) -> bytes:
    """Return the bytes of base64, with or without padding; b"" if it is invalid."""
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):  # ValueError: characters outside ASCII
        return b""
