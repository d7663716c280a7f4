"""User names and hashed passwords in the file format of Mosquitto's `mosquitto_passwd`."""

import hashlib
import hmac
import os
from collections.abc import KeysView
from pathlib import Path

from gateway.config.errors import ConfigurationError
from gateway.config.named_file import open_named, without_mark
from gateway.pieces import BLANKS, LINES, Pieces, complete, is_on_purpose
from gateway.server.passwords.hashing import ALLOWED, HASH_SIZE, Password, parse

MAXIMUM_BYTES = 16 * 1024 * 1024
"""Bytes of a password file: more than 100,000 users."""

KEY_SIZE = 32
"""Bytes of the key with which checked passwords are hashed."""

_NOBODY = Password("7", 101, bytes(12), bytes(HASH_SIZE))
"""Checked if the file is empty, with the iterations that mosquitto_passwd uses."""


class PasswordFile:
    """The users of one password file; an empty one is `empty_on_purpose` if it says so."""

    __slots__ = ("_decoy", "_key", "_passwords", "_remembered", "empty_on_purpose")

    def __init__(self, passwords: dict[str, Password], *, empty_on_purpose: bool = False) -> None:
        self._passwords = passwords
        self.empty_on_purpose = empty_on_purpose
        self._key = os.urandom(KEY_SIZE)
        self._remembered: dict[str, bytes] = {}  # one for each user at most
        self._decoy = max(passwords.values(), key=lambda entry: entry.work, default=_NOBODY)

    def __len__(self) -> int:
        return len(self._passwords)

    def names(self) -> KeysView[str]:
        """Return every user name."""
        return self._passwords.keys()

    def users(self) -> list[tuple[str, str]]:
        """Return every user name, in the file's order, with the kind of its hash."""
        return [(name, password.description) for name, password in self._passwords.items()]

    def check(self, username: str | None, password: bytes | None) -> bool:
        """Return whether the user exists and this is the password; False if either is None.

        An unknown user costs as much work as the file's costliest password, so that the time of an
        answer does not reveal which names exist. A check takes as long as its iterations.
        """
        if username is None or password is None:
            return False
        known = self._passwords.get(username)
        if known is None:
            self._decoy.check(password)
            return False
        right = known.check(password)
        if right:
            self._remembered[username] = self._digest(password)
        return right

    def remembers(self, username: str | None, password: bytes | None) -> bool:
        """Return, at no cost, whether this password was found right before.

        So a thousand clients that reconnect wait for no hash. The stored digest is useless in any
        other process.
        """
        if username is None or password is None:
            return False
        found = self._remembered.get(username)
        if found is None:
            return False
        return hmac.compare_digest(found, self._digest(password))

    def has(self, username: str) -> bool:
        """Return whether the user exists."""
        return username in self._passwords

    def same(self, other: "PasswordFile", username: str) -> bool:
        """Return whether both files have the user with the same password."""
        mine = self._passwords.get(username)
        return mine is not None and mine == other._passwords.get(username)  # noqa: SLF001

    def _digest(self, password: bytes) -> bytes:
        return hashlib.blake2b(password, key=self._key).digest()


def load(path: Path) -> PasswordFile:
    """Read a password file at once; raise ConfigurationError as `load_in_pieces` does."""
    return complete(load_in_pieces(path))


def load_in_pieces(path: Path) -> Pieces[PasswordFile]:
    """Read a password file; empty lines and those that begin with `#` are skipped.

    Raises ConfigurationError if the file cannot be read or is larger than MAXIMUM_BYTES. Raises it
    with the number of a line that repeats a user or is no user with a hashed password.
    """
    lines: dict[str, int] = {}
    passwords: dict[str, Password] = {}
    on_purpose = False
    for number, raw in enumerate(_read(path).split(b"\n"), start=1):
        if number % LINES == 0:
            yield
        line = _text(raw, path, number).strip(BLANKS)
        if not line or line.startswith("#"):
            on_purpose = on_purpose or is_on_purpose(line)
            continue
        username, colon, hashed = line.partition(":")
        # otherwise it may be part of a hash, which must not be logged
        username = username.rstrip(BLANKS) if colon else ""
        password = parse(hashed.lstrip(BLANKS))
        if password is None or not username:
            raise ConfigurationError(str(path), f"line {number}", username, ALLOWED)
        if username in lines:
            again = f"one line for each user, and line {lines[username]} names this one"
            raise ConfigurationError(str(path), f"line {number}", username, again)
        lines[username] = number
        passwords[username] = password
    return PasswordFile(passwords, empty_on_purpose=on_purpose)


def _read(path: Path) -> bytes:
    try:
        with open_named(path) as file:
            data = file.read(MAXIMUM_BYTES + 1)
    except OSError as error:
        raise ConfigurationError(str(path), "", None, error.strerror or str(error)) from error
    if len(data) > MAXIMUM_BYTES:
        raise ConfigurationError(str(path), "", None, f"larger than {MAXIMUM_BYTES} bytes")
    return without_mark(data)


def _text(raw: bytes, path: Path, number: int) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        username, colon, _ = raw.partition(b":")
        username = username if colon else b""
        raise ConfigurationError(str(path), f"line {number}", username, "UTF-8 text") from None
