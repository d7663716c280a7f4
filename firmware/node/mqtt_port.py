"""Two topics of a broker as the node's line, over Wi-Fi, with MicroPython's client umqtt.

Frames go to `<topic>/up` and come from `<topic>/down` at QoS 0: a frame that is lost is sent again.
"""

import select

import network
from umqtt import simple

from . import const
from .wire import Wire

TYPE_CHECKING = False  # MicroPython has no typing module
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .loop import Clock, Port

_PORT = const(1883)
_TLS_PORT = const(8883)

_RETRY_MIN_MS = const(2000)
_RETRY_MAX_MS = const(60000)
"""Between two tries to connect; each wait is twice the one before, until the gateway is heard."""

_JOIN_MS = const(20000)
"""Milliseconds for which a board may try to join the network before it begins anew."""

_CONNECT_MS = const(4000)
_HANDSHAKE_MS = const(15000)
"""Milliseconds in which the broker has to be connected, without and with TLS."""

_WAIT_MS = const(2000)
"""Milliseconds in which a packet has to be whole once it has begun, or has to leave."""

_PING_MS = const(15000)
_SILENCE_MS = const(40000)
"""Milliseconds in which nothing came, not even answers to pings, after which it connects anew."""

_KEEP_ALIVE_S = const(60)
_HEARD_MAX = const(1024)
"""Bytes that are taken at once, from the broker and from the cable each."""

LOST = (
    OSError,
    simple.MQTTException,
    AssertionError,
    IndexError,
    TypeError,
    ValueError,
    MemoryError,
)
"""What the client raises where a broker refuses it, cuts it off or answers with nonsense."""


class MqttPort:
    """The line of the node `name`; it connects by itself, again and again, for ever.

    Everything goes to the line `cable` as well, and what comes from there is heard. While it waits
    for the broker, it calls `idle`. Of `settings`, `wifi` has `ssid` and `password`,
    and `broker` has `host`, and may have `port`, `username`, `password` and `topic`, which is
    `nodes/<name>` otherwise. With `context`, a TLS context, the broker has to prove itself.
    """

    def __init__(
        self,
        name: str,
        settings: "dict[str, Any]",
        clock: "Clock",
        cable: "Port",
        context: "Any" = None,
    ) -> None:
        self.idle: Callable[[], None] | None = None
        self._cable = cable
        self._wifi = settings["wifi"]
        broker = settings["broker"]
        self._topic = broker.get("topic") or "nodes/" + name
        self._clock = clock
        self._connected = False
        self._station = network.WLAN(network.STA_IF)
        self._station.active(True)  # noqa: FBT003 - the board takes it by place alone
        self._heard = b""
        self._heard_at = self._pinged_at = self._try_at = self._join_at = clock.ms()
        self._wait_ms = _RETRY_MIN_MS
        self._connect_ms = _CONNECT_MS if context is None else _HANDSHAKE_MS
        self._wire = Wire(clock, self._pause, broker["host"], context)
        simple.socket = self._wire  # type: ignore[attr-defined, unused-ignore]  # the client takes none in another way
        self._client = simple.MQTTClient(
            "node-" + name,
            broker["host"],
            broker.get("port") or (_PORT if context is None else _TLS_PORT),
            broker.get("username"),
            broker.get("password") or "",
            keepalive=_KEEP_ALIVE_S,
        )
        self._client.set_callback(self._receive)

    def read(self) -> bytes:
        """Return what has arrived; connect where that is due."""
        self._hear_cable()
        now = self._clock.ms()
        try:
            if self._connected:
                self._take(now)
            elif now >= self._try_at:
                self._connect(now)
        except LOST:
            self._disconnect()
        heard, self._heard = self._heard, b""
        return heard

    def write(self, data: bytes) -> object:
        """Publish; what the connection does not take now is lost."""
        self._cable.write(data)
        if not self._connected or not self._wire.is_ready(select.POLLOUT):
            return None
        try:
            self._wire.begin(_WAIT_MS)
            self._client.publish(self._topic + "/up", data)
        except LOST:
            self._disconnect()
        return None

    def close(self) -> None:
        """Give cable and connection up."""
        self._wire.close()
        if hasattr(self._cable, "close"):
            self._cable.close()

    def _disconnect(self) -> None:
        """Give the connection up; the next try is later each time."""
        self._connected = False
        self._wire.close()
        self._try_at = self._clock.ms() + self._wait_ms
        self._wait_ms = min(2 * self._wait_ms, _RETRY_MAX_MS)

    def _connect(self, now: int) -> None:
        if not self._station.isconnected():
            self._try_at = now + _RETRY_MIN_MS
            self._join(now)
            return
        self._wire.begin(self._connect_ms)
        self._client.connect()
        self._client.subscribe(self._topic + "/down")
        self._connected = True
        self._heard_at = self._pinged_at = self._clock.ms()

    def _join(self, now: int) -> None:
        """Join the network, which the board goes on with by itself; each call begins anew."""
        if now < self._join_at:
            return
        self._join_at = now + _JOIN_MS
        try:
            self._station.connect(self._wifi["ssid"], self._wifi["password"])
        except OSError:  # an ESP32 that is about to, or has no such network
            pass

    def _take(self, now: int) -> None:
        while len(self._heard) < _HEARD_MAX and self._wire.is_ready(select.POLLIN):
            self._heard_at = now
            self._wire.begin(_WAIT_MS)
            self._client.check_msg()
        if now - self._heard_at >= _SILENCE_MS:
            raise OSError("silent")
        if now - self._pinged_at >= _PING_MS:
            self._pinged_at = now
            if self._wire.is_ready(select.POLLOUT):
                self._wire.begin(_WAIT_MS)
                self._client.ping()

    def _receive(self, _topic: bytes, message: bytes) -> None:
        self._heard += message
        self._wait_ms = _RETRY_MIN_MS

    def _hear_cable(self) -> None:
        if len(self._heard) < _HEARD_MAX:
            self._heard += self._cable.read() or b""

    def _pause(self) -> None:
        self._hear_cable()
        if self.idle is not None:
            self.idle()
