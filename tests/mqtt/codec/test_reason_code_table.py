"""Which reason codes go with which packets, against table 2-6 of MQTT 5."""

from gateway.mqtt.codec.reason_code_codec import REASON_CODES
from gateway.mqtt.packets import PacketType
from gateway.mqtt.reason_codes import ReasonCode
from tests.support.table import table

TABLE_2_6 = {
    0x00: "CONNACK PUBACK PUBREC PUBREL PUBCOMP SUBACK UNSUBACK DISCONNECT AUTH",
    0x01: "SUBACK",
    0x02: "SUBACK",
    0x04: "DISCONNECT",
    0x10: "PUBACK PUBREC",
    0x11: "UNSUBACK",
    0x18: "AUTH",
    0x19: "AUTH",
    0x80: "CONNACK PUBACK PUBREC SUBACK UNSUBACK DISCONNECT",
    0x81: "CONNACK DISCONNECT",
    0x82: "CONNACK DISCONNECT",
    0x83: "CONNACK PUBACK PUBREC SUBACK UNSUBACK DISCONNECT",
    0x84: "CONNACK",
    0x85: "CONNACK",
    0x86: "CONNACK",
    0x87: "CONNACK PUBACK PUBREC SUBACK UNSUBACK DISCONNECT",
    0x88: "CONNACK",
    0x89: "CONNACK DISCONNECT",
    0x8A: "CONNACK",
    0x8B: "DISCONNECT",
    0x8C: "CONNACK DISCONNECT",
    0x8D: "DISCONNECT",
    0x8E: "DISCONNECT",
    0x8F: "SUBACK UNSUBACK DISCONNECT",
    0x90: "CONNACK PUBACK PUBREC DISCONNECT",
    0x91: "PUBACK PUBREC SUBACK UNSUBACK",
    0x92: "PUBREL PUBCOMP",
    0x93: "DISCONNECT",
    0x94: "DISCONNECT",
    0x95: "CONNACK DISCONNECT",
    0x96: "DISCONNECT",
    0x97: "CONNACK PUBACK PUBREC SUBACK DISCONNECT",
    0x98: "DISCONNECT",
    0x99: "CONNACK PUBACK PUBREC DISCONNECT",
    0x9A: "CONNACK DISCONNECT",
    0x9B: "CONNACK DISCONNECT",
    0x9C: "CONNACK DISCONNECT",
    0x9D: "CONNACK DISCONNECT",
    0x9E: "SUBACK DISCONNECT",
    0x9F: "CONNACK DISCONNECT",
    0xA0: "DISCONNECT",
    0xA1: "SUBACK DISCONNECT",
    0xA2: "SUBACK DISCONNECT",
}


def test_each_reason_code_has_a_packet() -> None:
    assert set(TABLE_2_6) == set(ReasonCode)


@table("packet_type", REASON_CODES, ids=lambda packet_type: packet_type.name)
def test_a_packet_carries_the_codes_of_the_table_alone(packet_type: PacketType) -> None:
    expected = {code for code, names in TABLE_2_6.items() if packet_type.name in names.split()}
    assert set(REASON_CODES[packet_type]) == expected
    assert all(code == reason for code, reason in REASON_CODES[packet_type].items())
