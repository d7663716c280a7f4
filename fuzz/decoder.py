"""Any bytes of any packet: a packet that means the same when it is written again, or MqttError."""

import sys

import atheris

with atheris.instrument_imports(include=["gateway"]):
    from gateway.mqtt.codec.packet_codec import decode, encode
    from gateway.mqtt.errors import MqttError
    from gateway.mqtt.framing import Framer
    from gateway.mqtt.packets import Packet

NO_LIMIT = 0xFFFFFFFF
VERSIONS = (0, 3, 4, 5)


def read_again(packet: Packet, version: int) -> Packet:
    """Return what the packet is read as when it has been written."""
    framer = Framer(NO_LIMIT)
    framer.feed(encode(packet, version))
    first_byte = framer.next_frame()
    assert first_byte
    return decode(framer.buffer, first_byte, framer.body, framer.end, version)


def one_input(data: bytes) -> None:
    """Decode a body behind a version and a first byte."""
    if len(data) < 2:
        return
    version = VERSIONS[data[0] % len(VERSIONS)]
    try:
        packet = decode(data, data[1], 2, len(data), version)
    except MqttError:
        return
    version = version or getattr(packet, "protocol_version", version)
    assert read_again(packet, version) == packet


if __name__ == "__main__":
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()
