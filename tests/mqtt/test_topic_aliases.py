"""What a topic alias stands for."""

import pytest

from gateway.mqtt.errors import ProtocolError
from gateway.mqtt.reason_codes import ReasonCode
from gateway.mqtt.topic_aliases import InboundAliases


def test_an_alias_stands_for_the_last_topic_name_it_came_with() -> None:
    aliases = InboundAliases(3)
    assert aliases.resolve("a", 1) == "a"
    assert aliases.resolve("b", 3) == "b"
    assert aliases.resolve("", 1) == "a"
    assert aliases.resolve("c", 1) == "c"
    assert aliases.resolve("", 1) == "c"
    assert aliases.resolve("", 3) == "b"


def test_without_an_alias_the_topic_name_counts_and_no_alias_changes() -> None:
    aliases = InboundAliases(1)
    aliases.resolve("a", 1)
    assert aliases.resolve("b", None) == "b"
    assert aliases.resolve("", 1) == "a"


@pytest.mark.parametrize(
    ("maximum", "alias", "allowed"),
    [(3, 0, "1 to 3"), (3, 4, "1 to 3"), (3, 65535, "1 to 3"), (0, 1, "none"), (0, 0, "none")],
)
@pytest.mark.parametrize("topic", ["", "a"])
def test_an_alias_out_of_range_is_invalid(
    topic: str, maximum: int, alias: int, allowed: str
) -> None:
    with pytest.raises(ProtocolError) as raised:
        InboundAliases(maximum).resolve(topic, alias)
    assert raised.value.reason_code == ReasonCode.TOPIC_ALIAS_INVALID
    assert raised.value.reason == f"topic alias {alias}; allowed: {allowed}"


@pytest.mark.parametrize("alias", [None, 2])
def test_nothing_to_find_the_topic_name_by_is_a_protocol_error(alias: int | None) -> None:
    aliases = InboundAliases(2)
    aliases.resolve("a", 1)
    with pytest.raises(ProtocolError) as raised:
        aliases.resolve("", alias)
    assert raised.value.reason_code == ReasonCode.PROTOCOL_ERROR


def test_connections_share_no_aliases() -> None:
    InboundAliases(1).resolve("a", 1)
    with pytest.raises(ProtocolError):
        InboundAliases(1).resolve("", 1)
