"""Clients of a listener with a mount point: their topics are a part of all topics.

Topics are changed in the packets between the socket and the client's protocol. So everything
behind it, from access rules to the disk, knows only whole topics.
"""

import asyncio
from typing import Any

from gateway.access.topics import CONTROL, DELAY, OWN_MESSAGES, prefixed
from gateway.mqtt.codec.fields import (
    VARIABLE_BYTE_INTEGER_LIMIT,
    read_variable_byte_integer,
    write_variable_byte_integer,
)
from gateway.mqtt.errors import MalformedPacket
from gateway.mqtt.packets import MQTT_5, PacketType
from gateway.mqtt.topics import QUEUE_PREFIX, SHARED_PREFIX, TOPIC_LIMIT
from gateway.server.wrapped_transport import PassingConnection

PUBLISH, SUBSCRIBE, UNSUBSCRIBE = PacketType.PUBLISH, PacketType.SUBSCRIBE, PacketType.UNSUBSCRIBE
BEFORE_ACCEPTANCE = (PacketType.CONNECT, PacketType.AUTH)
"""What a client may send before its CONNECT is accepted."""

REST = VARIABLE_BYTE_INTEGER_LIMIT * VARIABLE_BYTE_INTEGER_LIMIT
"""Bytes of a stream that cannot be read any more: all of it. The broker closes the connection."""

_CONTROL = CONTROL.encode()
_DELAY = DELAY.encode()
_QUEUE = QUEUE_PREFIX.encode()
_SHARED = SHARED_PREFIX.encode()
_LENGTH_BYTES = 4  # of a remaining length (section 1.5.5)


class Mount:
    """Puts `prefix` in front of the topics that a client sends, and removes it from its output.

    A packet that is wrong is passed on as it is: the broker refuses it, and the client's rights end
    at the prefix. `largest` is the size from which on it refuses any packet.
    """

    __slots__ = ("_largest", "_missing", "_prefix", "_rest", "_through", "_version")

    def __init__(self, prefix: bytes, version: int, largest: int) -> None:
        self._prefix = prefix
        self._version = version
        self._largest = largest
        self._rest = bytearray()  # of a packet whose topics have not all come
        self._missing = 0  # bytes of it that must come first
        self._through = 0  # bytes of the packet that stay as they are

    @property
    def held(self) -> int:
        """Bytes that are held."""
        return len(self._rest)

    def add(self, data: bytes | bytearray) -> bytes:
        """Return the packets that are complete up to their topics, with whole topics."""
        rest = self._rest
        rest += data
        self._missing -= len(data)
        if self._missing > 0:
            return b""
        out, position = bytearray(), 0
        while position < len(rest):
            if self._through:
                end = min(len(rest), position + self._through)
                out += rest[position:end]
                self._through -= end - position
                position = end
                continue
            end = self._next(rest, position, out)
            if end == position and not self._through:
                break
            position = end
        del rest[:position]
        return bytes(out)

    def remove(self, data: bytes | bytearray) -> bytes | bytearray:
        """Return whole packets with the topics as the client knows them."""
        prefix, longer = self._prefix, len(self._prefix)
        out, copied, position = bytearray(), 0, 0
        while position < len(data):
            length, body = _remaining_length(data, position)
            if data[position] >> 4 == PUBLISH:
                size, name = int.from_bytes(data[body : body + 2], "big"), body + 2
                if size > longer and data.startswith(prefix, name):
                    out += data[copied : position + 1]
                    out += write_variable_byte_integer(length - longer)
                    out += (size - longer).to_bytes(2, "big")
                    copied = name + longer
            position = body + length
        if not copied:
            return data
        out += data[copied:]
        return out

    def _next(self, rest: bytearray, start: int, out: bytearray) -> int:
        """Add the packet at `start`, or its beginning, to `out`; return where the rest begins.

        That is `start` if more bytes must come, or if the packet stays as it is.
        """
        length, body = _remaining_length(rest, start)
        kind, end = rest[start] >> 4, body + length
        if not body:
            self._missing = 1
            self._through = REST if length else 0
            return start
        if kind == PUBLISH:
            return self._publish(rest, start, body, length, out)
        if kind not in (SUBSCRIBE, UNSUBSCRIBE) or end - start > self._largest:
            self._through = end - start
            return start
        if end > len(rest):
            self._missing = end - len(rest)
            return start
        try:
            packet = self._filters(bytes(rest[body:end]), with_options=kind == SUBSCRIBE)
        except MalformedPacket:
            packet = bytes(rest[body:end])
        out.append(rest[start])
        out += write_variable_byte_integer(len(packet)) + packet
        return end

    def _publish(self, rest: bytearray, start: int, body: int, length: int, out: bytearray) -> int:
        """Add a PUBLISH up to the end of its topic."""
        name = body + 2
        if length >= 2 and len(rest) < name:
            self._missing = name - len(rest)
            return start
        size = int.from_bytes(rest[body:name], "big")
        end = name + size
        if not 0 < size <= length - 2:  # malformed, or with an alias only
            self._through = body + length - start
            return start
        if len(rest) < end:
            self._missing = end - len(rest)
            return start
        topic = self._topic(bytes(rest[name:end]))
        longer = len(topic) - size
        if len(topic) > TOPIC_LIMIT or length + longer > VARIABLE_BYTE_INTEGER_LIMIT:
            self._through = body + length - start
            return start
        out.append(rest[start])
        out += write_variable_byte_integer(length + longer) + len(topic).to_bytes(2, "big") + topic
        self._through = length - 2 - size
        return end

    def _topic(self, topic: bytes) -> bytes:
        """Return a whole topic; the same for a command that concerns the client's own messages."""
        if topic.startswith(_CONTROL) and OWN_MESSAGES.fullmatch(topic.decode(errors="replace")):
            return topic
        return prefixed(topic, self._prefix, _DELAY)

    def _filters(self, body: bytes, *, with_options: bool) -> bytes:
        """Return a SUBSCRIBE or UNSUBSCRIBE with whole topic filters; raise MalformedPacket."""
        position, end = 2, len(body)
        if self._version == MQTT_5:
            properties, position = read_variable_byte_integer(body, position, end, "properties")
            position += properties
        out = bytearray(body[:position])
        while position < end:
            name = position + 2
            position = name + int.from_bytes(body[position:name], "big")
            if position + with_options > end:
                raise MalformedPacket("a topic filter that is too short")
            topic_filter = self._filter(body[name:position])
            out += len(topic_filter).to_bytes(2, "big") + topic_filter
            if with_options:
                out.append(body[position])
                position += 1
        if len(out) > VARIABLE_BYTE_INTEGER_LIMIT:
            raise MalformedPacket("too many topic filters")
        return bytes(out)

    def _filter(self, topic_filter: bytes) -> bytes:
        """Return a whole topic filter; the same for one that cannot become a whole one."""
        prefix = self._prefix
        if topic_filter.startswith(
            _QUEUE
        ):  # names a channel, and a part of its topics if it says one
            whole = prefixed(topic_filter, prefix, _QUEUE)
        else:
            whole = prefixed(topic_filter, prefix, _SHARED)
        # a mount point that ends inside a level makes no level of a wildcard
        inside = not prefix.endswith(b"/") and any(prefix + each in whole for each in (b"+", b"#"))
        return topic_filter if not topic_filter or inside or len(whole) > TOPIC_LIMIT else whole


def _remaining_length(data: bytes | bytearray, start: int) -> tuple[int, int]:
    """Return the remaining length of a packet, and where its body begins.

    (0, 0) while bytes are missing, (1, 0) if it has too many.
    """
    value = 0
    for place in range(_LENGTH_BYTES):
        position = start + 1 + place
        if position >= len(data):
            return 0, 0
        value |= (data[position] & 0x7F) << 7 * place
        if data[position] < 0x80:
            return value, position + 1
    return 1, 0


class MountedConnection(PassingConnection):
    """Between a client's protocol and what is below: the client knows a part of the topics.

    The part depends on its names, so it is known when its CONNECT was accepted. What the client
    sends before that waits here; the broker bounds it as part of the CONNECT.
    """

    def __init__(self, inner: Any) -> None:
        super().__init__(inner)
        self._mount: Mount | None = None
        self._waiting = bytearray()  # received before the CONNECT was accepted
        self._through = 0  # bytes of it that may pass
        self._begun = False
        self._below = 0

    def data_received(self, data: bytes) -> None:
        """Pass on what is received, with whole topics."""
        if self._mount is None:
            self._waiting += data
            self._go_on()
        else:
            self._pass(data)

    def note_below(self, size: int) -> None:
        """Count these bytes, which a WebSocket holds, with those here."""
        self._below = size
        held = len(self._waiting) + (0 if self._mount is None else self._mount.held)
        self._inner.note_below(size + held)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send whole packets, with the topics as the client knows them."""
        if self._mount is None and self._accepted() and self._waiting:
            asyncio.get_running_loop().call_soon(self._go_on)
        if self._mount is not None:
            data = self._mount.remove(data if isinstance(data, bytearray) else bytes(data))
        super().write(data)

    def _go_on(self) -> None:
        """Pass on CONNECT, and once it is accepted all that followed."""
        waiting = self._waiting
        while waiting and not self._accepted():
            size = min(self._passing(), len(waiting))
            if not size:
                break
            self._through -= size
            data = bytes(waiting[:size])
            del waiting[:size]
            self._inner.data_received(data)
        if self._mount is not None and waiting:
            data = bytes(waiting)
            waiting.clear()
            self._pass(data)
        else:
            self.note_below(self._below)

    def _passing(self) -> int:
        """Return how many of the waiting bytes may pass before the CONNECT is accepted."""
        waiting = self._waiting
        if not self._through and (not self._begun or waiting[0] >> 4 in BEFORE_ACCEPTANCE):
            length, body = _remaining_length(waiting, 0)
            if waiting[0] >> 4 not in BEFORE_ACCEPTANCE:
                self._through = REST  # of no client
            elif body:
                self._through = body + length
                self._begun = True
            elif length:
                self._through = REST
        return self._through

    def _accepted(self) -> bool:
        """Return whether the CONNECT was accepted; find the client's mount point then."""
        client = self._inner.client
        if self._mount is None and client is not None and client.session is not None:
            connection, access = client.connection, client.session.granted
            self._mount = Mount(
                access.prefix.encode(), connection.version, connection.framer.maximum_packet_size
            )
        return self._mount is not None

    def _pass(self, data: bytes) -> None:
        """Pass on what an accepted client sent."""
        if self._mount is not None:
            whole = self._mount.add(data)
            if whole:
                self._inner.data_received(whole)
            self.note_below(self._below)
