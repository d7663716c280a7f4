"""The fleet's broker: its address, who we are there, and a client for it."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion

from pipeline.errors import PipelineError

KEEP_ALIVE = 30


@dataclass(frozen=True)
class Broker:
    """Where messages come from, and below which topics."""

    url: str
    prefix: str = "tidegate"
    username: str | None = None
    password: str | None = None
    ca_file: str | None = None

    def client(self, name: str, **options: Any) -> Client:
        """Return a client of MQTT 5 that is not connected yet; `options` are paho's."""
        made = Client(
            CallbackAPIVersion.VERSION2, name, protocol=MQTTProtocolVersion.MQTTv5, **options
        )
        if self.username is not None:
            made.username_pw_set(self.username, self.password)
        if self.url.startswith("mqtts:"):
            made.tls_set(ca_certs=self.ca_file)
        return made

    def connect(self, client: Client, **options: Any) -> None:
        """Begin a connection; `options` are paho's. Raises OSError where nobody answers."""
        address = urlsplit(self.url)
        port = address.port or (8883 if address.scheme == "mqtts" else 1883)
        client.connect(address.hostname or "localhost", port, KEEP_ALIVE, **options)


def check_broker(url: str) -> None:
    """Raise PipelineError unless the address is one of a broker."""
    address = urlsplit(url)
    if address.scheme not in ("mqtt", "mqtts") or not address.hostname:
        raise PipelineError(f"broker {url} is not mqtt://HOST[:PORT] or mqtts://HOST[:PORT]")
