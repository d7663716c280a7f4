"""What tests of the configuration say of it."""

from collections.abc import Callable

from gateway.config.configuration import Configuration

Load = Callable[[str], Configuration]
URL = "mqtt://host:port, mqtts://host:port, ws://host:port/path or wss://host:port/path"
