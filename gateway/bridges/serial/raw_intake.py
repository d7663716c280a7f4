"""The bytes of a port as they are, for those who read them themselves."""

from gateway.bridges.supervision.host import Host
from gateway.mqtt.reason_codes import FAILURE


class RawIntake:
    """Publishes each piece that arrives on `sensors/<node>/raw`."""

    def __init__(self, node: str, host: Host) -> None:
        self._topic = f"sensors/{node}/raw"
        self._host = host

    def restart(self) -> None:
        """There is nothing to forget."""

    def feed(self, data: bytes) -> None:
        """Publish bytes as they arrived."""
        self._host.heard()
        if self._host.send(self._topic, data) >= FAILURE:
            self._host.count("lost")
