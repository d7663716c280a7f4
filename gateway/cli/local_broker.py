"""A command's short connection to a running gateway, as a plain MQTT client."""

import argparse
import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion

from gateway.cli.own_gateway import closed_socket, default_url, error_at, other_urls
from gateway.cli.parser import LOCAL_BROKER
from gateway.config.operator_socket import SCHEME
from gateway.errors import TidegateError

KEEP_ALIVE = 30

SHOWN_USER = 32
"""Characters of the user's name in the client identifier."""

DEFAULT_PORTS = {"mqtt": 1883, "mqtts": 8883}


@dataclass(frozen=True, slots=True)
class LocalBroker:
    """The gateway's address, and the credentials for it."""

    url: str
    username: str | None
    password: str | None
    ca_file: Path | None
    cert: Path | None = None
    key: Path | None = None

    @classmethod
    def of(cls, options: argparse.Namespace) -> "LocalBroker":
        """Return the address of the command line; the password is never an argument."""
        url = options.url or default_url(options.username)
        try:
            parts = urlsplit(url)
            known = _is_complete(parts)
        except ValueError:  # the port, or an unclosed [
            known = False
        if not known:
            allowed = "mqtt://host:port, mqtts://host:port or mqtt+unix:///path"
            raise TidegateError(f"{url!r} is not {allowed}")
        if parts.scheme != "mqtts" and (options.cert or options.key):
            raise TidegateError(f"--cert is of use only with an mqtts:// URL, not {url!r}")
        password = os.environ.get("TIDEGATE_PASSWORD")
        if options.password_file is not None:
            try:
                password = options.password_file.read_text(encoding="utf-8").rstrip("\r\n")
            except OSError as error:
                raise TidegateError(f"{options.password_file}: {error.strerror}") from error
            except UnicodeDecodeError as error:
                raise TidegateError(f"{options.password_file}: not UTF-8") from error
        return cls(
            url,
            options.username or (unquote(parts.username) if parts.username else None),
            password or (unquote(parts.password) if parts.password else None),
            options.ca_file,
            options.cert,
            options.key,
        )

    @property
    def name(self) -> str:
        """Its URL, and the better socket if this user may not use it."""
        if self.url != LOCAL_BROKER:
            return self.url
        if (closed := closed_socket()) is not None:
            return f"{self.url} ({closed} is for root and the gateway's group)"
        others = other_urls() if self.username is None else []
        if len(others) > 1:
            return f"{self.url} (several gateways run here, name one: {', '.join(others)})"
        return self.url

    def connect(self) -> paho.Client:
        """Return a paho client that is connecting; raise TidegateError."""
        parts = urlsplit(self.url)
        by_socket = parts.scheme == SCHEME
        client = paho.Client(
            CallbackAPIVersion.VERSION2,
            client_id_of(os.environ),
            protocol=paho.MQTTv5,
            transport="unix" if by_socket else "tcp",
        )
        if self.username is not None:
            client.username_pw_set(self.username, self.password)
        if parts.scheme == "mqtts":
            client.tls_set_context(tls_context(self.ca_file, self.cert, self.key))
        try:
            if by_socket:
                path = unquote(parts.path)
                if fault := error_at(Path(path)):
                    raise OSError(fault, os.strerror(fault))  # noqa: TRY301 - paho leaves a socket
                client.connect(path, keepalive=KEEP_ALIVE)
            else:
                port = parts.port or DEFAULT_PORTS[parts.scheme]
                client.connect(parts.hostname or "", port, KEEP_ALIVE)
        except (OSError, ValueError) as error:
            raise TidegateError(f"no gateway at {self.name}: {error}") from error
        return client


def tls_context(ca_file: Path | None, cert: Path | None, key: Path | None) -> ssl.SSLContext:
    """Return the TLS context with the gateway's CA and the own certificate; raise TidegateError."""
    try:
        context = ssl.create_default_context(cafile=ca_file)
    except OSError as error:  # ssl's own errors are among them
        raise TidegateError(f"{ca_file}: {error.strerror or error}") from error
    if cert is None and key is not None:
        raise TidegateError(f"--key {key}: only with --cert")
    if cert is not None:
        try:
            context.load_cert_chain(cert, key, password=_no_passphrase)
        except (OSError, ValueError) as error:
            named = cert if key is None else f"{cert} with {key}"
            raise TidegateError(f"{named}: {getattr(error, 'strerror', '') or error}") from error
    return context


def _no_passphrase() -> str:
    """Refuse a key with a passphrase, which OpenSSL would request at the terminal."""
    raise ValueError("the key has a passphrase; a command cannot ask for it")


def is_here(url: str) -> bool:
    """Return whether a gateway at this URL is on this machine."""
    parts = urlsplit(url)
    return parts.scheme == SCHEME or parts.hostname in ("127.0.0.1", "::1", "localhost")


def client_id_of(environment: Mapping[str, str]) -> str:
    """Return a client identifier that names the user in the gateway's log and events."""
    user = environment.get("SUDO_USER") or environment.get("USER") or str(os.getuid())
    return f"tidegate-{user[:SHOWN_USER]}-{os.urandom(4).hex()}"


def _is_complete(parts: SplitResult) -> bool:
    """Return whether a URL is complete; raise ValueError for an invalid port."""
    if parts.scheme == SCHEME:
        return not parts.netloc and bool(parts.path)
    return parts.scheme in DEFAULT_PORTS and bool(parts.hostname) and parts.port != 0
