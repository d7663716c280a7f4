import pytest

from gateway.mqtt.encode import encode
from gateway.mqtt.packets import MQTT_3_1, MQTT_3_1_1, MQTT_5, Publish
from gateway.mqtt.properties import NO_PROPERTIES, Properties
from gateway.routing.where.message import Message
from gateway.session.templates import Templates, properties_of, wire_for_one
from tests.support.versions import VERSIONS

PROPERTIES = {
    "user_properties": (("a", "1"), ("a", "2")),
    "content_type": "text/plain",
    "payload_format": 1,
    "message_expiry": 60,
    "response_topic": "answers",
    "correlation_data": b"\xff",
}
EMPTY: dict[str, object] = {"content_type": "", "payload_format": 0, "message_expiry": 0}
NAMES = {
    "payload_format": "payload_format_indicator",
    "message_expiry": "message_expiry_interval",
}


def test_without_properties_all_messages_share_one_object() -> None:
    assert properties_of(Message("a", b"x", 1, True, client_id="c")) is NO_PROPERTIES


@pytest.mark.parametrize(("name", "value"), [*PROPERTIES.items(), *EMPTY.items()])
def test_each_property_is_forwarded(name: str, value: object) -> None:
    message = Message("a", **{name: value})  # type: ignore[arg-type]  # by name
    assert properties_of(message) == Properties(**{NAMES.get(name, name): value})  # type: ignore[arg-type]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_message_is_encoded_once_for_each_protocol(version: int) -> None:
    message = Message("a", b"x", content_type="text/plain")
    templates = Templates(message)
    template = templates.template(version)
    assert templates.template(version) is template
    properties = Properties(content_type="text/plain")
    assert template.wire(0, False, False, 0) == encode(
        Publish("a", b"x", properties=properties), version
    )


def test_mqtt_3_1_and_3_1_1_share_their_form() -> None:
    templates = Templates(Message("a"))
    assert templates.template(MQTT_3_1) is templates.template(MQTT_3_1_1)
    assert templates.template(MQTT_5) is not templates.template(MQTT_3_1_1)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("flags", [(0, True, False), (1, False, True), (2, False, False)])
@pytest.mark.parametrize("identifiers", [(), (7, 300)])
@pytest.mark.parametrize(
    ("properties", "expiry"),
    [({}, None), ({"content_type": "a"}, None), ({"message_expiry": 60}, 5)],
)
def test_what_is_encoded_for_one_is_what_all_get(
    version: int,
    flags: tuple[int, bool, bool],
    identifiers: tuple[int, ...],
    properties: dict[str, object],
    expiry: int | None,
) -> None:
    message = Message("a/ä", b"x", 2, **properties)  # type: ignore[arg-type]  # by name
    data = wire_for_one(message, version, *flags, 513, identifiers, expiry)
    template = Templates(message).template(version)
    assert data == template.wire(*flags, 513, identifiers, expiry)
