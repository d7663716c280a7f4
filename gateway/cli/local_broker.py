"""A short conversation of a command with a running gateway, as a plain MQTT client."""

import argparse
import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion

from gateway.errors import TidegateError

KEEP_ALIVE = 30
DEFAULT_PORTS = {"mqtt": 1883, "mqtts": 8883}


@dataclass(frozen=True, slots=True)
class LocalBroker:
    """Where the gateway listens, and as whom to connect."""

    url: str
    username: str | None
    password: str | None
    ca_file: Path | None

    @classmethod
    def of(cls, options: argparse.Namespace) -> "LocalBroker":
        """Return what the command line says; the password is never an argument."""
        allowed = "mqtt://host:port or mqtts://host:port"
        try:
            parts = urlsplit(options.url)
            known = parts.scheme in DEFAULT_PORTS and parts.hostname and parts.port != 0
        except ValueError:  # the port, or an unclosed [
            known = False
        if not known:
            raise TidegateError(f"{options.url!r} is not {allowed}")
        password = os.environ.get("TIDEGATE_PASSWORD")
        if options.password_file is not None:
            try:
                password = options.password_file.read_text(encoding="utf-8").rstrip("\r\n")
            except OSError as error:
                raise TidegateError(f"{options.password_file}: {error.strerror}") from error
            except UnicodeDecodeError as error:
                raise TidegateError(f"{options.password_file}: not UTF-8") from error
        return cls(
            options.url,
            options.username or (unquote(parts.username) if parts.username else None),
            password or (unquote(parts.password) if parts.password else None),
            options.ca_file,
        )

    def connect(self) -> paho.Client:
        """Return a paho client whose connection is under way; raise TidegateError."""
        parts = urlsplit(self.url)
        client = paho.Client(CallbackAPIVersion.VERSION2, protocol=paho.MQTTv5)
        if self.username is not None:
            client.username_pw_set(self.username, self.password)
        if parts.scheme == "mqtts":
            try:
                client.tls_set(ca_certs=str(self.ca_file) if self.ca_file else None)
            except OSError as error:  # ssl's own errors are among them
                raise TidegateError(f"{self.ca_file}: {error.strerror or error}") from error
        try:
            port = parts.port or DEFAULT_PORTS[parts.scheme]
            client.connect(parts.hostname or "", port, KEEP_ALIVE)
        except (OSError, ValueError) as error:
            raise TidegateError(f"no gateway at {self.url}: {error}") from error
        return client
