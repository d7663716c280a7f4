"""One end of a network connection to a broker, which says and hears exact bytes."""

import socket
import struct
from collections.abc import Callable
from typing import Any

from tests.conformance.support import wire
from tests.conformance.support.answers import (
    ConnAck,
    Publish,
    read_connack,
    read_disconnect,
    read_publish,
    whole_packet,
)

SECONDS = 60.0
"""How long an answer may take on a busy machine."""


class Peer:
    """A client of protocol version `version` that does nothing by itself."""

    def __init__(self, sock: socket.socket, version: int) -> None:
        self.version = version
        self.client_id = ""
        self.connack = ConnAck(0, 0, {})
        self.socket = sock
        self._received = bytearray()

    def send(self, *packets: bytes) -> None:
        self.socket.sendall(b"".join(packets))

    def receive(self) -> bytes:
        """Return the next packet; b"" at the connection's end."""
        while not (size := whole_packet(self._received)):
            try:
                data = self.socket.recv(65_536)
            except ConnectionResetError:
                data = b""
            if not data:
                assert not self._received, f"half a packet: {self._received.hex(' ')}"
                return b""
            self._received += data
        raw = bytes(self._received[:size])
        del self._received[:size]
        return raw

    def expect(self, *packets: bytes) -> None:
        """Hear exactly these packets next."""
        for expected in packets:
            received = self.receive()
            assert received == expected, f"{received.hex(' ')} is not {expected.hex(' ')}"

    def expect_publish(self, topic: str, payload: bytes = b"", **fields: Any) -> Publish:
        """Hear a PUBLISH next, of QoS 0 and without flags or properties but for `fields`."""
        received = read_publish(self.receive(), self.version)
        expected = {"qos": 0, "retain": False, "dup": False, "properties": [], **fields}
        expected |= {"topic": topic.encode(), "payload": payload}
        found = {name: getattr(received, name) for name in expected}
        assert found == expected, f"{found} is not {expected}"
        assert bool(received.packet_id) == bool(received.qos)
        return received

    def expect_nothing(self) -> None:
        """Hear nothing but the answer to a PINGREQ: all that was before it has been handled."""
        self.send(wire.PINGREQ)
        self.expect(wire.PINGRESP)

    def expect_end(self) -> None:
        """See the connection end without another packet."""
        received = self.receive()
        assert not received, f"still a packet: {received.hex(' ')}"

    def expect_error(self, code: int) -> None:
        """See the connection end, in MQTT 5 behind a DISCONNECT with this code."""
        if self.version == wire.MQTT_5:
            disconnect = read_disconnect(self.receive())
            assert f"0x{disconnect.code:02X}" == f"0x{code:02X}", disconnect
        self.expect_end()

    def expect_no_acceptance(self, code: int | None = None) -> None:
        """See the connection end; before that at most a CONNACK that refuses, with this code.

        Whether there is a CONNACK is left to the server in MQTT 5 [MQTT-4.13.1-1]; for a
        CONNECT that is not well-formed there is none in MQTT 3.1.1 [MQTT-3.1.4-1].
        """
        if self.version == wire.MQTT_5 and (raw := self.receive()):
            connack = read_connack(raw, self.version)
            assert connack.flags == 0
            assert connack.code >= 0x80
            assert code is None or connack.code == code, connack
        self.expect_end()

    def connect(self, client_id: str = "", **fields: Any) -> "Peer":
        """Send a CONNECT; fail unless it is accepted."""
        self.client_id = client_id
        self.send(wire.connect(self.version, client_id, **fields))
        self.connack = read_connack(self.receive(), self.version)
        assert self.connack.code == 0, self.connack
        return self

    def subscribe(self, *requests: tuple[str, int], properties: bytes = b"") -> "Peer":
        """Subscribe to topic filters with their option bytes; fail unless each is granted."""
        self.send(wire.subscribe(self.version, 9999, *requests, properties=properties))
        granted = [options & 3 for _, options in requests]
        self.expect(wire.suback(self.version, 9999, *granted))
        return self

    def publish(
        self, topic: str, payload: bytes = b"", qos: int = 0, packet_id: int = 1, **fields: Any
    ) -> None:
        """Publish and finish the handshake; whether anybody subscribes does not matter."""
        self.send(wire.publish(self.version, topic, payload, qos, packet_id, **fields))
        if qos == 0:
            self.expect_nothing()
        elif qos == 1:
            self._expect_accepted(wire.PUBACK, packet_id)
        else:
            self._expect_accepted(wire.PUBREC, packet_id)
            self.send(wire.acknowledgement(wire.PUBREL, packet_id))
            self.expect(wire.acknowledgement(wire.PUBCOMP, packet_id))

    def publish_unanswered(self, topic: str, payload: bytes = b"", **fields: Any) -> None:
        """Publish at QoS 0 and wait for nothing."""
        self.send(wire.publish(self.version, topic, payload, **fields))

    def _expect_accepted(self, first_byte: int, packet_id: int) -> None:
        accepted = [wire.acknowledgement(first_byte, packet_id)]
        if self.version == wire.MQTT_5:
            accepted.append(wire.acknowledgement(first_byte, packet_id, 0x10))
        raw = self.receive()
        assert raw in accepted, f"no acceptance of {packet_id}: {raw.hex(' ')}"

    def disconnect(self, code: int | None = None, properties: bytes | None = None) -> None:
        """Take leave, and see the server close."""
        self.send(wire.disconnect(code, properties))
        self.expect_end()
        self.close()

    def close(self) -> None:
        """End the network connection without a DISCONNECT."""
        self.socket.close()

    def reset(self) -> None:
        """End the network connection with a TCP reset."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()


class Peers:
    """Opens peers to one broker, names clients and topics like nobody else's, closes all."""

    def __init__(self, port: int, name: Callable[[], str]) -> None:
        self.port = port
        self.name = name
        self.topic = f"{name()}/topic"
        self._opened: list[Peer] = []

    def open(self, version: int = wire.MQTT_5) -> Peer:
        """Return a peer that has said nothing yet."""
        sock = socket.create_connection(("127.0.0.1", self.port), SECONDS)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        peer = Peer(sock, version)
        self._opened.append(peer)
        return peer

    def connect(
        self, version: int = wire.MQTT_5, client_id: str | None = None, **fields: Any
    ) -> Peer:
        """Return a peer whose CONNECT was accepted, with a name of its own if none is given."""
        return self.open(version).connect(self.name() if client_id is None else client_id, **fields)

    def persistent(
        self, version: int = wire.MQTT_5, client_id: str | None = None, **fields: Any
    ) -> Peer:
        """Return a connected peer whose session outlives its connection."""
        if version == wire.MQTT_5:
            interval = wire.four_property(wire.SESSION_EXPIRY_INTERVAL, 600)
            fields["properties"] = fields.get("properties", b"") + interval
        return self.connect(version, client_id, clean=False, **fields)

    def forget(self, peer: Peer) -> None:
        """Return once the broker has done all that the end of this peer's connection brings."""
        self.connect(peer.version, peer.client_id, clean=True).disconnect()

    def close(self) -> None:
        for peer in self._opened:
            peer.close()
