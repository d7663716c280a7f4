"""Where the gateway is and how to log in: a URL and its companions.

The URL is an `mqtt://`, `mqtts://` or, of a Unix socket, `mqtt+unix://` one.
"""

import os
import ssl
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit

DEFAULT_URL = "mqtt://127.0.0.1:1883"
PASSWORD_VARIABLE = "TIDEGATE_PASSWORD"  # noqa: S105 - the variable's name
DEFAULT_PORTS = {"mqtt": 1883, "mqtts": 8883}
SOCKET = "mqtt+unix"
MOST_PASSWORD_BYTES = 65_535
"""bytes, by MQTT 5 section 3.1.3.6"""


class AddressError(ValueError):
    """An address that cannot be used; its text is one line for the person who typed it."""


@dataclass(frozen=True, slots=True)
class Address:
    """A gateway's host and port, the login, and the TLS context of an `mqtts://` one.

    With port 0 the host is the path of a Unix socket.
    """

    host: str
    port: int
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    tls: ssl.SSLContext | None = field(default=None, repr=False, compare=False)

    def with_password(self, password: str) -> "Address":
        """Return the same address with another password."""
        return replace(self, password=password)

    def __str__(self) -> str:
        """Return the URL without login."""
        if not self.port:
            return f"{SOCKET}://{self.host}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'mqtt' if self.tls is None else 'mqtts'}://{host}:{self.port}"


def parse_address(
    url: str,
    username: str | None = None,
    password_file: Path | None = None,
    ca_file: Path | None = None,
    cert: Path | None = None,
    key: Path | None = None,
) -> Address:
    """Return the address that these options of the command give.

    The user name is `username`, or else the URL's. The password is the first line of
    `password_file`, or else the variable TIDEGATE_PASSWORD, or else the URL's. `cert` is a client
    certificate, whose private key is in the same file or in `key`.
    Raises AddressError, without repeating a password.
    """
    parts = _split(url)
    if ca_file is not None and parts.scheme != "mqtts":
        raise AddressError(f"CA file {str(ca_file)!r} is of use only with an mqtts:// URL")
    if (cert or key) is not None and parts.scheme != "mqtts":
        raise AddressError(f"certificate {str(cert or key)!r} is of use only with an mqtts:// URL")
    user = username if username is not None else _unquoted(parts.username) or None
    password = _password(parts, password_file)
    if user is None and (password_file is not None or parts.password is not None):
        raise AddressError("a password was given without a user name")
    return Address(
        *_place(parts),
        user,
        None if user is None else password,
        _tls_context(ca_file, cert, key) if parts.scheme == "mqtts" else None,
    )


def _place(parts: SplitResult) -> tuple[str, int]:
    """Return host and port, or the path of a socket and 0."""
    if parts.scheme == SOCKET:
        return unquote(parts.path), 0
    return parts.hostname or "", parts.port or DEFAULT_PORTS[parts.scheme]


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        if parts.scheme == SOCKET and parts.path.strip("/") and not parts.netloc:
            return parts
        usable = parts.scheme in DEFAULT_PORTS and parts.hostname and parts.port != 0
    except ValueError:  # its text may repeat a piece of a password
        usable = False
    if not usable:
        allowed = (
            "use mqtt://HOST[:PORT] or mqtts://HOST[:PORT], with a port from 1 to 65535,"
            f" or {SOCKET}:///PATH"
        )
        raise AddressError(f"URL {_shown(url)!r}: {allowed}")
    if parts.path.strip("/") or parts.query or parts.fragment:
        raise AddressError(f"URL {_shown(url)!r}: nothing may follow the port")
    return parts


def _shown(url: str) -> str:
    """Return the URL with what stands before its last @ left out: there may be a password."""
    before, at, after = url.rpartition("@")
    return f"{before.partition('://')[0]}://…@{after}" if at else url


def _unquoted(text: str | None) -> str | None:
    return None if text is None else unquote(text)


def _password(parts: SplitResult, password_file: Path | None) -> str | None:
    if password_file is not None:
        return _read_password(password_file)
    return os.environ.get(PASSWORD_VARIABLE, _unquoted(parts.password))


def _read_password(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            line = opened.readline(MOST_PASSWORD_BYTES + 2).rstrip(b"\r\n")
        password = line.decode()
    except OSError as problem:
        raise AddressError(f"password file {str(file)!r}: {problem.strerror}") from None
    except UnicodeDecodeError:
        raise AddressError(f"password file {str(file)!r}: its first line is not UTF-8") from None
    if not password or len(line) > MOST_PASSWORD_BYTES:
        limit = f"1 to {MOST_PASSWORD_BYTES} bytes"
        raise AddressError(f"password file {str(file)!r}: its first line must have {limit}")
    return password


def _tls_context(ca_file: Path | None, cert: Path | None, key: Path | None) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=ca_file)
    except ssl.SSLError as problem:
        raise AddressError(f"CA file {str(ca_file)!r}: {problem.reason or problem}") from None
    except OSError as problem:
        raise AddressError(f"CA file {str(ca_file)!r}: {problem.strerror}") from None
    if cert is None and key is not None:
        raise AddressError(f"key {str(key)!r} is of use only with a certificate")
    if cert is not None:
        try:
            context.load_cert_chain(cert, key, password=_no_passphrase)
        except (OSError, ValueError) as problem:
            reason = getattr(problem, "strerror", "") or problem
            raise AddressError(f"certificate {str(cert)!r}: {reason}") from None
    return context


def _no_passphrase() -> str:
    """Refuse a key with a passphrase, which OpenSSL would ask the terminal for."""
    raise ValueError("the key has a passphrase, which this program does not ask for")
