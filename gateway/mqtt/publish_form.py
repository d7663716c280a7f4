"""The packets of a run as receivers get them at another QoS, or in another protocol version."""

from gateway.mqtt.fields import write_byte, write_variable_byte_integer
from gateway.mqtt.packet_run import PacketRun, uneven_run
from gateway.mqtt.publish import publish_first_byte

GROWTH = 2
"""Bytes by which a packet may grow: a property length, and a remaining length of a byte more."""


def behind_topic(qos: int, properties: bool) -> int:
    """Return the bytes between topic name and payload of a PUBLISH without properties.

    In MQTT 5 a byte says that there are no `properties`.
    """
    return 2 * (qos > 0) + properties


def rewrite(run: PacketRun, topic: bytes, payload: int, qos: int, *, properties: bool) -> PacketRun:
    """Return packets with the same payloads, this QoS and no properties.

    Their bodies begin with `topic`; payloads stand `payload` bytes behind the start of the bodies
    of `run`. The packet identifiers are 0.
    """
    data, bodies = run.data, run.bodies
    behind = topic + bytes(behind_topic(qos, properties))
    first_byte = write_byte(publish_first_byte(qos, retain=False, dup=False))
    heads: dict[int, bytes] = {}
    parts: list[bytes] = []
    starts: list[int] = []
    ends = [*run.starts[1:], len(data)]
    start = 0
    for body, end in zip(bodies, ends, strict=True):
        part = data[body + payload : end]
        head = heads.get(len(part))
        if head is None:
            length = len(behind) + len(part)
            head = first_byte + write_variable_byte_integer(length) + behind
            heads[len(part)] = head
        starts.append(start)
        parts += (head, part)
        start += len(head) + len(part)
    size = start // len(starts)
    if len(heads) == 1:
        body = size - len(behind) - len(parts[1])
        return PacketRun(b"".join(parts), size, body)
    sizes = zip(starts, parts[::2], strict=True)
    bodies = [at + len(head) - len(behind) for at, head in sizes]
    return uneven_run(b"".join(parts), starts, bodies)
