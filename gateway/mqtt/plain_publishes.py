"""PUBLISH packets without properties that came one behind the other (MQTT 5, section 3.3)."""

from gateway.mqtt.framing import Framer
from gateway.mqtt.packets import MQTT_5
from gateway.mqtt.publish import publish_first_byte


class PlainPublishes:
    """Takes such packets, of QoS 0 or 1 and with RETAIN, as long as they come and are all right.

    `topic`, `payload` and `packet_id`, 0 at QoS 0, are those of the packet that was taken last;
    `count` is how many were.
    """

    __slots__ = (
        "_first_byte",
        "_framer",
        "_qos",
        "_version",
        "count",
        "packet_id",
        "payload",
        "topic",
    )

    def __init__(self, framer: Framer, version: int, qos: int) -> None:
        self._framer = framer
        self._version = version
        self._qos = qos
        self._first_byte = publish_first_byte(qos, retain=True, dup=False)
        self.count = 0
        self.topic = ""
        self.payload = b""
        self.packet_id = 0

    def take(self) -> bool:
        """Take the next packet; return False, with nothing taken, if it is another.

        Then `decode` has to say what it is, or what is wrong with it.
        """
        frame = self._framer.take_like(self._first_byte)
        if frame is None:
            return False
        buffer, start, end = frame
        if not self._read(buffer, start, end):
            self._framer.pass_over(0)
            return False
        self.count += 1
        return True

    def give_back(self) -> None:
        """Leave the packet that was taken last to somebody else."""
        self._framer.pass_over(0)
        self.count -= 1

    def _read(self, buffer: bytes, start: int, end: int) -> bool:
        """Read the body of a packet; return False if there is anything special about it."""
        name = start + 2
        if name > end:
            return False
        name_end = name + (buffer[start] << 8 | buffer[start + 1])
        newest = self._version == MQTT_5
        payload = name_end + 2 * self._qos + newest
        if payload > end or name_end == name or (newest and buffer[payload - 1]):
            return False
        try:
            topic = buffer[name:name_end].decode()
        except UnicodeDecodeError:
            return False
        if "\0" in topic or "+" in topic or "#" in topic:
            return False
        if self._qos:
            self.packet_id = buffer[name_end] << 8 | buffer[name_end + 1]
            if not self.packet_id:
                return False
        self.topic = topic
        self.payload = buffer[payload:end]
        return True
