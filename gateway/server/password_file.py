"""User names and hashed passwords in the file format of Mosquitto's `mosquitto_passwd`."""

import base64
import binascii
import hashlib
import hmac
from dataclasses import dataclass
from pathlib import Path

from gateway.config.errors import ConfigurationError

MAXIMUM_ITERATIONS = 1_000_000
"""Rounds of PBKDF2 that one check may cost: seconds on a small board, so already generous."""

MAXIMUM_BYTES = 16 * 1024 * 1024
"""Bytes of a password file: more than 100,000 users."""

HASH_SIZE = 64
"""Bytes of a SHA-512 hash."""

ALLOWED = (
    "user:$7$<iterations>$<salt>$<hash> or user:$6$<salt>$<hash>, as"
    " mosquitto_passwd -H sha512-pbkdf2 writes it"
)


@dataclass(slots=True, frozen=True)
class _Password:
    """A salted hash; `iterations` is 0 for `$6$`, one plain SHA-512 of password and salt."""

    iterations: int
    salt: bytes
    hashed: bytes

    def check(self, password: bytes) -> bool:
        """Tell whether this is the password, in a time that doesn't depend on the answer."""
        if self.iterations:
            hashed = hashlib.pbkdf2_hmac("sha512", password, self.salt, self.iterations)
        else:
            hashed = hashlib.sha512(password + self.salt).digest()
        return hmac.compare_digest(hashed, self.hashed)


_NOBODY = _Password(101, bytes(12), bytes(HASH_SIZE))
"""What an empty file checks against, with the iterations that mosquitto_passwd uses."""


class PasswordFile:
    """The users of one password file."""

    __slots__ = ("_decoy", "_passwords")

    proves = True

    def __init__(self, passwords: dict[str, _Password]) -> None:
        self._passwords = passwords
        self._decoy = max(passwords.values(), key=lambda entry: entry.iterations, default=_NOBODY)

    def __len__(self) -> int:
        return len(self._passwords)

    def check(self, username: str | None, password: bytes | None) -> bool:
        """Tell whether the user exists and this is the password; False if either is None.

        An unknown user costs as much work as the file's costliest password, so that the time
        of an answer doesn't tell which names exist. A check takes as long as its iterations.
        """
        if username is None or password is None:
            return False
        known = self._passwords.get(username)
        if known is None:
            self._decoy.check(password)
            return False
        return known.check(password)


def load(path: Path) -> PasswordFile:
    """Read a password file; lines that are empty or begin with `#` are left out.

    Raises ConfigurationError, with the number of the line, if the file cannot be read, is
    larger than MAXIMUM_BYTES, or has a line that is no user with a hashed password or names a
    user again.
    """
    lines: dict[str, int] = {}
    passwords: dict[str, _Password] = {}
    for number, raw in enumerate(_read(path).split(b"\n"), start=1):
        line = _text(raw, path, number).strip()
        if not line or line.startswith("#"):
            continue
        username, _, hashed = line.partition(":")
        username = username.rstrip()
        password = _parse(hashed.lstrip())
        if password is None or not username:
            raise ConfigurationError(str(path), f"line {number}", username, ALLOWED)
        if username in lines:
            again = f"one line for each user, and line {lines[username]} names this one"
            raise ConfigurationError(str(path), f"line {number}", username, again)
        lines[username] = number
        passwords[username] = password
    return PasswordFile(passwords)


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(MAXIMUM_BYTES + 1)
    except OSError as error:
        raise ConfigurationError(str(path), "", None, error.strerror or str(error)) from error
    if len(data) > MAXIMUM_BYTES:
        raise ConfigurationError(str(path), "", None, f"larger than {MAXIMUM_BYTES} bytes")
    return data


def _text(raw: bytes, path: Path, number: int) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        username = raw.partition(b":")[0]
        raise ConfigurationError(str(path), f"line {number}", username, "UTF-8 text") from None


def _parse(hashed: str) -> _Password | None:
    """Return the password of `$7$...` or `$6$...`; None if it has another form."""
    match hashed.split("$"):
        case ["", "7", iterations, salt, digest]:
            rounds = _iterations(iterations)
        case ["", "6", salt, digest]:
            rounds = 0
        case _:
            return None
    salt_bytes, digest_bytes = _base64(salt), _base64(digest)
    if rounds is None or not salt_bytes or len(digest_bytes) != HASH_SIZE:
        return None
    return _Password(rounds, salt_bytes, digest_bytes)


def _iterations(text: str) -> int | None:
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(MAXIMUM_ITERATIONS))):
        return None
    iterations = int(text)
    return iterations if 1 <= iterations <= MAXIMUM_ITERATIONS else None


def _base64(text: str) -> bytes:
    """Return the bytes; none if it is not base64."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):  # ValueError: characters outside ASCII
        return b""
