"""PUBLISH packets that stand one behind the other, read back from where they were stored."""

from gateway.mqtt.errors import MalformedPacket
from gateway.mqtt.fields import write_string
from gateway.mqtt.framing import Framer
from gateway.mqtt.publish import publish_first_byte
from gateway.mqtt.publish_run import PublishRun, publish_run

MAXIMUM_BYTES = 64 * 1024 * 1024
"""Bytes of packets that are looked at: far more than are ever stored as one."""

_FIRST_BYTES = [publish_first_byte(qos, retain=False, dup=False) for qos in (1, 2)]


def stored_run(data: bytes, topic: str, *, properties: bool) -> PublishRun:
    """Return the run of this topic whose packets are `data`; raise ValueError if it is none.

    In MQTT 5 a byte of each packet says that there are no `properties`.
    """
    begin = write_string(topic)
    framer = Framer(MAXIMUM_BYTES)
    framer.feed(data)
    try:
        frame = framer.next_frame()
    except MalformedPacket as error:
        raise ValueError(f"a run of packets: {error}") from error
    if frame is None or frame[1] not in _FIRST_BYTES or not data.startswith(begin, frame[2]):
        raise ValueError("a run of packets that are no PUBLISH of their topic")
    least = len(begin) + 2 + properties
    run = publish_run(framer.run(begin, least, MAXIMUM_BYTES, len(data)), len(begin), properties)
    if run is None or len(run.packets.data) != len(data):
        raise ValueError("a run of packets with others among them")
    return run
