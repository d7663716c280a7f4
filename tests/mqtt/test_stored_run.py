"""Packets that were stored as they came are read back as the run that they were, or not at all."""

import pytest

from gateway.mqtt.encode import encode
from gateway.mqtt.packets import MQTT_3_1_1, MQTT_5, PubAck, Publish
from gateway.mqtt.properties import Properties
from gateway.mqtt.stored_run import stored_run

SIZES = {"alike": [3, 3, 3, 3], "other sizes": [3, 0, 200, 1]}


def packets(sizes: list[int], version: int, qos: int = 1) -> bytes:
    return b"".join(
        encode(Publish("a/b", b"x" * size, qos, packet_id=number), version)
        for number, size in enumerate(sizes, 7)
    )


@pytest.mark.parametrize("qos", [1, 2])
@pytest.mark.parametrize("version", [MQTT_3_1_1, MQTT_5])
@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
def test_a_run_is_read_back(sizes: list[int], version: int, qos: int) -> None:
    run = stored_run(packets(sizes, version, qos), "a/b", properties=version == MQTT_5)
    assert [run.one(number) for number in range(run.count)] == [b"x" * size for size in sizes]
    assert [*run.packet_ids] == [7, 8, 9, 10]


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
def test_a_part_is_a_run_too(sizes: list[int]) -> None:
    packet_run = stored_run(packets(sizes, MQTT_5), "a/b", properties=True).packets
    for first in range(4):
        for end in range(first + 1, 5):
            part = packet_run.part(first, end)
            run = stored_run(part.data, "a/b", properties=True)
            assert part.data == packets(sizes, MQTT_5)[packet_run.starts[first] :][: len(part.data)]
            assert [*part.starts] == [*run.packets.starts]
            assert [*part.bodies] == [*run.packets.bodies]
            assert [*run.packet_ids] == [*range(7 + first, 7 + end)]


GOOD = packets([3, 3], MQTT_5)
BAD = {
    "nothing": b"",
    "not whole": GOOD[:-1],
    "not even a header": GOOD[:1],
    "something behind": GOOD + b"\0",
    "no PUBLISH": encode(PubAck(1), MQTT_5) * 2,
    "QoS 0": encode(Publish("a/b", b"xxx"), MQTT_5) * 2,
    "another topic": encode(Publish("a/c", b"xxx", 1, packet_id=1), MQTT_5) * 2,
    "a remaining length of five bytes": b"\x32\xff\xff\xff\xff\x01",
    "properties": encode(
        Publish("a/b", b"x", 1, packet_id=1, properties=Properties(content_type="t")), MQTT_5
    ),
    "no packet identifier": encode(Publish("a/b", b"x", 1, packet_id=1), MQTT_5).replace(
        b"\0\x01\0", b"\0\0\0"
    ),
}


@pytest.mark.parametrize("data", BAD.values(), ids=BAD)
def test_what_is_no_run_is_an_error(data: bytes) -> None:
    with pytest.raises(ValueError, match="a run of packets"):
        stored_run(data, "a/b", properties=True)
