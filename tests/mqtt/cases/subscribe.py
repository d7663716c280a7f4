"""SUBSCRIBE and SUBACK."""

from gateway.mqtt.packets import SubAck, Subscribe, SubscriptionRequest
from gateway.mqtt.properties import Properties
from gateway.mqtt.reason_codes import ReasonCode
from tests.mqtt.cases.case import ALL, BEFORE_5, ONLY_5, PacketCase, malformed, protocol_error

PACKETS = [
    PacketCase(
        "subscribe", 4, b"\x82\x06\x00\x01\x00\x01#\x00", Subscribe(1, [SubscriptionRequest("#")])
    ),
    PacketCase(
        "subscribe, two topic filters",
        3,
        b"\x82\x0c\x00\x0a\x00\x03a/+\x01\x00\x01b\x02",
        Subscribe(10, [SubscriptionRequest("a/+", 1), SubscriptionRequest("b", 2)]),
    ),
    PacketCase(
        "subscribe, MQTT 5, every option and property",
        5,
        b"\x82\x15\x00\x01\x0a\x0b\x80\x01\x26\x00\x01k\x00\x01v\x00\x01t\x2e\x00\x01u\x10",
        Subscribe(
            1,
            [
                SubscriptionRequest(
                    "t", 2, no_local=True, retain_as_published=True, retain_handling=2
                ),
                SubscriptionRequest("u", retain_handling=1),
            ],
            Properties(subscription_identifiers=(128,), user_properties=(("k", "v"),)),
        ),
    ),
    PacketCase(
        "subscribe, MQTT 5, a shared subscription",
        5,
        b"\x82\x10\x00\x01\x00\x00\x0a$share/g/t\x09",
        Subscribe(1, [SubscriptionRequest("$share/g/t", 1, retain_as_published=True)]),
    ),
    PacketCase(
        "suback",
        4,
        b"\x90\x06\x00\x01\x00\x01\x02\x80",
        SubAck(
            1,
            [
                ReasonCode.SUCCESS,
                ReasonCode.GRANTED_QOS_1,
                ReasonCode.GRANTED_QOS_2,
                ReasonCode.UNSPECIFIED_ERROR,
            ],
        ),
    ),
    PacketCase(
        "suback, MQTT 5",
        5,
        b"\x90\x05\x00\x01\x00\x00\x8f",
        SubAck(1, [ReasonCode.SUCCESS, ReasonCode.TOPIC_FILTER_INVALID]),
    ),
    PacketCase(
        "suback, MQTT 5, every property",
        5,
        b"\x90\x0f\x00\x01\x0b\x1f\x00\x01r\x26\x00\x01k\x00\x01v\x01",
        SubAck(
            1,
            [ReasonCode.GRANTED_QOS_1],
            Properties(reason_string="r", user_properties=(("k", "v"),)),
        ),
    ),
]

MALFORMED = [
    malformed("subscribe of nothing", ALL, 0x82, b""),
    protocol_error("subscribe with packet identifier 0", ALL, 0x82, b"\x00\x00\x00\x01t\x00"),
    protocol_error("subscribe without a topic filter", BEFORE_5, 0x82, b"\x00\x01"),
    protocol_error("subscribe without a topic filter, MQTT 5", ONLY_5, 0x82, b"\x00\x01\x00"),
    malformed("subscribe without properties", ONLY_5, 0x82, b"\x00\x01"),
    malformed("topic filter empty", BEFORE_5, 0x82, b"\x00\x01\x00\x00\x00"),
    malformed("second topic filter empty", ONLY_5, 0x82, b"\x00\x01\x00\x00\x01t\x00\x00\x00\x00"),
    malformed(
        "first topic filter invalid", BEFORE_5, 0x82, b"\x00\x01\x00\x03#/+\x00\x00\x01t\x00"
    ),
    malformed("share without a filter", ONLY_5, 0x82, b"\x00\x01\x00\x00\x08$share/g\x00"),
    malformed("topic filter not UTF-8", ONLY_5, 0x82, b"\x00\x01\x00\x00\x01\xff\x00"),
    malformed("no options", BEFORE_5, 0x82, b"\x00\x01\x00\x01t"),
    protocol_error("subscribe with QoS 3", BEFORE_5, 0x82, b"\x00\x01\x00\x01t\x03"),
    protocol_error("subscribe with QoS 3, MQTT 5", ONLY_5, 0x82, b"\x00\x01\x00\x00\x01t\x03"),
    malformed("No Local before MQTT 5", BEFORE_5, 0x82, b"\x00\x01\x00\x01t\x04"),
    malformed("retain as published before MQTT 5", BEFORE_5, 0x82, b"\x00\x01\x00\x01t\x08"),
    malformed("reserved option before MQTT 5", BEFORE_5, 0x82, b"\x00\x01\x00\x01t\x81"),
    protocol_error("retain handling 3", ONLY_5, 0x82, b"\x00\x01\x00\x00\x01t\x30"),
    protocol_error(
        "No Local on a shared subscription", ONLY_5, 0x82, b"\x00\x01\x00\x00\x0a$share/g/t\x05"
    ),
    protocol_error(
        "two subscription identifiers", ONLY_5, 0x82, b"\x00\x01\x04\x0b\x01\x0b\x02\x00\x01t\x00"
    ),
    malformed("suback without a reason code", BEFORE_5, 0x90, b"\x00\x01"),
    malformed("suback without a reason code, MQTT 5", ONLY_5, 0x90, b"\x00\x01\x00"),
    malformed("suback with QoS 3", BEFORE_5, 0x90, b"\x00\x01\x00\x03"),
    malformed("suback with a code of MQTT 5", BEFORE_5, 0x90, b"\x00\x01\x87"),
    malformed("suback with a code of connack", ONLY_5, 0x90, b"\x00\x01\x00\x00\x84"),
    protocol_error("suback with packet identifier 0", ALL, 0x90, b"\x00\x00\x00"),
]
