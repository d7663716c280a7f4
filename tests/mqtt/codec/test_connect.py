"""All 256 connect flags in each version."""

import pytest

from gateway.mqtt.codec.connect import PROTOCOL_NAMES, read_connect, read_protocol_version
from gateway.mqtt.codec.fields import write_string
from gateway.mqtt.errors import MalformedPacket
from tests.support.table import table

WILL = b"\x00\x01w\x00\x01p"


def connect(flags: int, version: int) -> bytes:
    """Return the body of a CONNECT that has what the flags say."""
    no_properties = b"\x00" if version == 5 else b""
    body = write_string(PROTOCOL_NAMES[version]) + bytes([version, flags]) + b"\x00\x00"
    body += no_properties + b"\x00\x01c"
    if flags & 0x04:
        body += no_properties + WILL
    return body + b"\x00\x01u" * (flags >> 7) + b"\x00\x01p" * (flags >> 6 & 1)


def allowed(flags: int, version: int) -> bool:
    """Say whether section 3.1.2.3 and those behind it allow these flags."""
    reserved = flags & 1
    will_flag, will_qos, will_retain = flags >> 2 & 1, flags >> 3 & 3, flags >> 5 & 1
    password_alone = flags & 0xC0 == 0x40
    return (
        not reserved
        and will_qos != 3
        and (will_flag == 1 or (will_qos == 0 and will_retain == 0))
        and not (password_alone and version < 5)
    )


@pytest.mark.uncovered
@table("version", [3, 4, 5])
@table("flags", range(256))
def test_connect_flags(flags: int, version: int) -> None:
    body = connect(flags, version)
    if not allowed(flags, version):
        with pytest.raises(MalformedPacket):
            read_connect(body, 0, len(body), 0)
        return
    packet = read_connect(body, 0, len(body), 0)
    assert packet.client_id == "c"
    assert packet.clean_start == bool(flags & 2)
    assert packet.username == ("u" if flags & 0x80 else None)
    assert packet.password == (b"p" if flags & 0x40 else None)
    assert (packet.will is not None) == bool(flags & 4)
    if packet.will:
        assert (packet.will.topic, packet.will.payload) == ("w", b"p")
        assert (packet.will.qos, packet.will.retain) == (flags >> 3 & 3, bool(flags & 0x20))


@pytest.mark.parametrize(("version", "name"), PROTOCOL_NAMES.items())
def test_a_protocol_version(version: int, name: str) -> None:
    raw = write_string(name) + bytes([version])
    assert read_protocol_version(raw + b"\x00", 0, len(raw)) == (version, len(raw))
