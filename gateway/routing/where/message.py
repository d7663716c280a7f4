"""The message that `$where` looks at, under the name by which other programs import it."""

from gateway.mqtt.message import Message

__all__ = ["Message"]
