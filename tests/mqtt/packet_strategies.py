"""Hypothesis strategies: every packet that a version of MQTT can say."""

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from gateway.mqtt import packets
from gateway.mqtt.codec.property_table import ALLOWED, WILL
from gateway.mqtt.codec.reason_code_codec import GRANTED_QOS_CODES, REASON_CODES
from gateway.mqtt.packets import MQTT_5, Packet
from gateway.mqtt.properties import NO_PROPERTIES, Properties
from gateway.mqtt.reason_codes import RETURN_CODES, ReasonCode
from tests.support.broker.topics import TOPIC_FILTERS

TYPES = packets.PacketType

texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
topic_names = texts.map(lambda text: text.replace("+", "").replace("#", "")).filter(bool)
topic_filters = st.one_of(
    TOPIC_FILTERS,
    topic_names.filter(lambda name: not name.startswith("$share")),
    TOPIC_FILTERS.map(lambda topic_filter: f"$share/g/{topic_filter}"),
)
binaries = st.binary(max_size=12)
packet_identifiers = st.integers(1, 0xFFFF)
flags = st.integers(0, 1)
four_bytes = st.integers(0, 0xFFFFFFFF)

PROPERTY_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "payload_format_indicator": flags,
    "message_expiry_interval": four_bytes,
    "content_type": texts,
    "response_topic": topic_names,
    "correlation_data": binaries,
    "subscription_identifiers": st.tuples(st.integers(1, 268_435_455)),
    "session_expiry_interval": four_bytes,
    "assigned_client_identifier": texts,
    "server_keep_alive": st.integers(0, 0xFFFF),
    "authentication_method": texts,
    "authentication_data": binaries,
    "request_problem_information": flags,
    "will_delay_interval": four_bytes,
    "request_response_information": flags,
    "response_information": texts,
    "server_reference": texts,
    "reason_string": texts,
    "receive_maximum": st.integers(1, 0xFFFF),
    "topic_alias_maximum": st.integers(0, 0xFFFF),
    "topic_alias": st.integers(1, 0xFFFF),
    "maximum_qos": flags,
    "retain_available": flags,
    "user_properties": st.lists(st.tuples(texts, texts), max_size=3).map(tuple),
    "maximum_packet_size": st.integers(1, 0xFFFFFFFF),
    "wildcard_subscription_available": flags,
    "subscription_identifier_available": flags,
    "shared_subscription_available": flags,
}


@st.composite
def properties(draw: st.DrawFn, packet: int, version: int) -> Properties:
    """Return any properties that a `packet` may carry in this version."""
    if version < MQTT_5 or draw(st.booleans()):
        return NO_PROPERTIES
    names = [row.name for row in ALLOWED[packet].values()]
    chosen = draw(st.lists(st.sampled_from(names), unique=True))
    values = {name: draw(PROPERTY_VALUES[name]) for name in chosen}
    if "authentication_method" not in values:
        values.pop("authentication_data", None)
    return Properties(**values)


def connects(version: int) -> st.SearchStrategy[Packet]:
    wills = st.builds(
        packets.Will,
        topic_names,
        binaries,
        st.integers(0, 2),
        st.booleans(),
        properties(WILL, version),
    )
    built = st.builds(
        packets.Connect,
        texts,
        st.just(version),
        st.booleans(),
        st.integers(0, 0xFFFF),
        st.none() | texts,
        st.none() | binaries,
        st.none() | wills,
        properties(TYPES.CONNECT, version),
    )
    return built.filter(
        lambda connect: (
            version >= MQTT_5 or connect.password is None or connect.username is not None
        )
    )


def connacks(version: int) -> st.SearchStrategy[Packet]:
    codes = REASON_CODES[TYPES.CONNACK].values()
    returned = {number: code for code, number in reversed(RETURN_CODES.items())}.values()
    return st.builds(
        packets.ConnAck,
        st.booleans() if version > packets.MQTT_3_1 else st.just(False),
        st.sampled_from(sorted(codes if version == MQTT_5 else returned)),
        properties(TYPES.CONNACK, version),
    )


def publishes(version: int) -> st.SearchStrategy[Packet]:
    content = (binaries, st.booleans(), properties(TYPES.PUBLISH, version))
    at_most_once = st.builds(
        lambda topic, payload, retain, properties: packets.Publish(
            topic, payload, 0, retain, properties=properties
        ),
        topic_names,
        *content,
    )
    at_least_once = st.builds(
        lambda qos, dup, packet_id, topic, payload, retain, properties: packets.Publish(
            topic, payload, qos, retain, dup, packet_id, properties
        ),
        st.integers(1, 2),
        st.booleans(),
        packet_identifiers,
        topic_names,
        *content,
    )
    return at_most_once | at_least_once


def acknowledgements(version: int) -> st.SearchStrategy[Packet]:
    kinds: dict[packets.PacketType, Callable[..., Packet]] = {
        TYPES.PUBACK: packets.PubAck,
        TYPES.PUBREC: packets.PubRec,
        TYPES.PUBREL: packets.PubRel,
        TYPES.PUBCOMP: packets.PubComp,
    }
    strategies = [
        st.builds(kind, packet_identifiers, reason_codes(row, version), properties(row, version))
        for row, kind in kinds.items()
    ]
    return st.one_of(strategies)


def reason_codes(packet_type: packets.PacketType, version: int) -> st.SearchStrategy[ReasonCode]:
    if version < MQTT_5:
        return st.just(ReasonCode.SUCCESS)
    return st.sampled_from(sorted(REASON_CODES[packet_type].values()))


def subscribes(version: int) -> st.SearchStrategy[Packet]:
    option = st.booleans() if version == MQTT_5 else st.just(False)
    retain_handling = st.integers(0, 2 if version == MQTT_5 else 0)
    requests = st.builds(
        packets.SubscriptionRequest,
        topic_filters,
        st.integers(0, 2),
        option,
        option,
        retain_handling,
    ).filter(lambda request: not (request.no_local and request.topic_filter.startswith("$share/")))
    return st.builds(
        packets.Subscribe,
        packet_identifiers,
        st.lists(requests, min_size=1, max_size=4),
        properties(TYPES.SUBSCRIBE, version),
    )


def subacks(version: int) -> st.SearchStrategy[Packet]:
    known = REASON_CODES[TYPES.SUBACK] if version == MQTT_5 else GRANTED_QOS_CODES
    return st.builds(
        packets.SubAck,
        packet_identifiers,
        st.lists(st.sampled_from(sorted(known.values())), min_size=1, max_size=4),
        properties(TYPES.SUBACK, version),
    )


def unsubscribes(version: int) -> st.SearchStrategy[Packet]:
    return st.builds(
        packets.Unsubscribe,
        packet_identifiers,
        st.lists(topic_filters, min_size=1, max_size=4),
        properties(TYPES.UNSUBSCRIBE, version),
    )


def unsubacks(version: int) -> st.SearchStrategy[Packet]:
    codes = st.lists(reason_codes(TYPES.UNSUBACK, version), min_size=1, max_size=4)
    return st.builds(
        packets.UnsubAck,
        packet_identifiers,
        codes if version == MQTT_5 else st.just([]),
        properties(TYPES.UNSUBACK, version),
    )


def pings(_version: int) -> st.SearchStrategy[Packet]:
    return st.sampled_from([packets.PingReq(), packets.PingResp()])


def disconnects(version: int) -> st.SearchStrategy[Packet]:
    return st.builds(
        packets.Disconnect,
        reason_codes(TYPES.DISCONNECT, version),
        properties(TYPES.DISCONNECT, version),
    )


def auths(_version: int) -> st.SearchStrategy[Packet]:
    named = properties(TYPES.AUTH, MQTT_5).filter(
        lambda properties: properties.authentication_method is not None
    )
    steps = st.builds(packets.Auth, reason_codes(TYPES.AUTH, MQTT_5), named)
    return st.just(packets.Auth()) | steps


STRATEGIES: list[Callable[[int], st.SearchStrategy[Packet]]] = [
    connects,
    connacks,
    publishes,
    acknowledgements,
    subscribes,
    subacks,
    unsubscribes,
    unsubacks,
    pings,
    disconnects,
]


@st.composite
def packets_of_a_version(draw: st.DrawFn) -> tuple[Packet, int]:
    """Return a packet and a protocol version (3, 4 or 5) that can say it."""
    version = draw(st.sampled_from([3, 4, 5]))
    strategies = [*STRATEGIES, auths] if version == MQTT_5 else STRATEGIES
    return draw(draw(st.sampled_from(strategies))(version)), version
