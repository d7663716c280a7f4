"""Two topics of a broker as the node's line, over Wi-Fi, with MicroPython's client umqtt.

Frames go to `<topic>/up` and come from `<topic>/down` at QoS 0: a frame that is lost is sent again.
"""

import select
import socket

import network
from umqtt.simple import MQTTClient, MQTTException

TYPE_CHECKING = False  # MicroPython has no typing module
if TYPE_CHECKING:
    from typing import Any

    from .loop import Clock

PORT = 1883

RETRY_MIN_MS = 2000
RETRY_MAX_MS = 60000
"""Between two tries to connect; each wait is twice the one before."""

PROBE_S = 2
"""Seconds in which a broker has to be there. The client itself would wait for a minute, and the
watchdog would end that."""

WRITE_S = 2
"""Seconds in which something has to leave that the connection said it takes."""

PING_MS = 15000
SILENCE_MS = 40000
"""Milliseconds in which nothing came, not even answers to pings, after which it connects anew."""

KEEP_ALIVE_S = 60
MESSAGES_MAX = 16
"""Messages that are taken at once."""

LOST = (OSError, MQTTException, AssertionError, IndexError, TypeError)
"""What the client raises where a connection is cut off or refused: it looks at what is missing."""


class MqttPort:
    """The line of the node `name`; it connects by itself, again and again, and never waits long.

    Of `settings`, `wifi` has `ssid` and `password`, and `broker` has `host`, and may have `port`,
    `username`, `password` and `topic`, which is `nodes/<name>` otherwise.
    """

    def __init__(self, name: str, settings: "dict[str, Any]", clock: "Clock") -> None:
        self._name = name
        self._wifi = settings["wifi"]
        self._broker = settings["broker"]
        self._topic = self._broker.get("topic") or "nodes/" + name
        self._clock = clock
        self._client: MQTTClient | None = None
        self._station = network.WLAN(network.STA_IF)
        self._station.active(True)  # noqa: FBT003 - the board takes it by place alone
        self._heard = b""
        self._heard_at = self._pinged_at = self._try_at = clock.ms()
        self._wait_ms = RETRY_MIN_MS

    def read(self) -> bytes:
        """Return what has arrived; connect where that is due."""
        now = self._clock.ms()
        if self._client is None:
            if now >= self._try_at:
                self._connect(now)
            return b""
        try:
            self._take(now)
        except LOST:
            self.close()
        heard, self._heard = self._heard, b""
        return heard

    def write(self, data: bytes) -> object:
        """Publish; what the connection does not take now is lost."""
        client = self._client
        if client is None or not self._is_ready(select.POLLOUT):
            return None
        try:
            client.sock.settimeout(WRITE_S)
            client.publish(self._topic + "/up", data)
        except LOST:
            self.close()
        return None

    def close(self) -> None:
        """Give the connection up."""
        client, self._client = self._client, None
        if client is not None:
            client.sock.close()

    def _connect(self, now: int) -> None:
        self._try_at = now + self._wait_ms
        self._wait_ms = min(2 * self._wait_ms, RETRY_MAX_MS)
        try:
            if not self._station.isconnected():
                self._station.connect(self._wifi["ssid"], self._wifi["password"])
                self._wait_ms = RETRY_MIN_MS  # it goes on by itself, and is looked at soon
                return
            self._client = self._connected()
        except LOST:
            return
        self._heard_at = self._pinged_at = self._clock.ms()
        self._wait_ms = RETRY_MIN_MS

    def _connected(self) -> "MQTTClient":
        broker = self._broker
        host, port = broker["host"], broker.get("port", PORT)
        address = socket.getaddrinfo(host, port)[0][-1]
        probe = socket.socket()
        try:
            probe.settimeout(PROBE_S)
            probe.connect(address)
        finally:
            probe.close()
        client = MQTTClient(
            "node-" + self._name,
            host,
            port,
            broker.get("username"),
            broker.get("password"),
            keepalive=KEEP_ALIVE_S,
        )
        client.set_callback(self._receive)
        try:
            client.connect()
            client.subscribe(self._topic + "/down")
        except LOST:
            client.sock.close()
            raise
        return client

    def _take(self, now: int) -> None:
        client = self._client
        for _ in range(MESSAGES_MAX):
            if client is None or not self._is_ready(select.POLLIN):
                break
            self._heard_at = now
            client.check_msg()
        if now - self._heard_at >= SILENCE_MS:
            raise OSError("silent")
        if client is not None and now - self._pinged_at >= PING_MS:
            self._pinged_at = now
            if self._is_ready(select.POLLOUT):
                client.ping()

    def _is_ready(self, what: int) -> bool:
        client = self._client
        if client is None:
            return False
        poll = select.poll()
        poll.register(client.sock, what)
        return bool(poll.poll(0))

    def _receive(self, _topic: bytes, message: bytes) -> None:
        self._heard += message


class Lines:
    """Several lines as one: everything goes to each, and what comes from any is heard."""

    def __init__(self, lines: "list[Any]") -> None:
        self._lines = lines

    def read(self) -> bytes:
        """Return what has arrived."""
        return b"".join([line.read() for line in self._lines])

    def write(self, data: bytes) -> object:
        """Send to all."""
        for line in self._lines:
            line.write(data)
        return None

    def close(self) -> None:
        """Close all."""
        for line in self._lines:
            line.close()
