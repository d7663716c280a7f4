import pytest

from gateway.mqtt.encode import encode
from gateway.mqtt.packets import MQTT_3_1_1, MQTT_5, Publish
from gateway.mqtt.publish_wire import append_publish, publish_wire

# a remaining length of 1, 2, 3 and 4 bytes begins at 0, 128, 16,384 and 2,097,152
LENGTHS = [0, 1, 119, 120, 121, 16_374, 16_375, 16_376, 16_377, 2_097_141, 2_097_143, 2_097_145]


@pytest.mark.parametrize("length", LENGTHS)
def test_it_is_what_encode_says(length: int) -> None:
    payload = b"x" * length
    publish = Publish("a/ä", payload, 1, True, False, 513)
    assert publish_wire(0x33, "a/ä", b"\x02\x01", payload) == encode(publish, MQTT_3_1_1)
    publish = Publish("a/ä", payload)
    alone = publish_wire(0x30, "a/ä", b"\0", payload)
    assert alone == encode(publish, MQTT_5)
    data = bytearray(b"before")
    append_publish(data, 0x30, "a/ä", b"\0", payload)
    assert data == b"before" + alone
