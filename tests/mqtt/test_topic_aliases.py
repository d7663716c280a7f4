"""What a topic alias that a client set stands for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.mqtt.alias_figures import InboundFigures
from gateway.mqtt.errors import ProtocolError
from gateway.mqtt.reason_codes import ReasonCode
from gateway.mqtt.topic_aliases import InboundAliases


def opened(maximum: int, figures: InboundFigures | None = None) -> InboundAliases:
    return InboundAliases(maximum, figures or InboundFigures())


def test_an_alias_stands_for_the_last_topic_name_it_came_with() -> None:
    aliases = opened(3)
    assert aliases.resolve(b"a", 1) == b"a"
    assert aliases.resolve(b"b", 3) == b"b"
    assert aliases.resolve(b"", 1) == b"a"
    assert aliases.resolve(b"c", 1) == b"c"
    assert aliases.resolve(b"", 1) == b"c"
    assert aliases.resolve(b"", 3) == b"b"


def test_a_topic_name_may_have_two_aliases() -> None:
    aliases = opened(2)
    for alias in (1, 2):
        assert aliases.resolve(b"a", alias) == b"a"
    assert aliases.resolve(b"b", 1) == b"b"
    assert [aliases.resolve(b"", alias) for alias in (1, 2)] == [b"b", b"a"]


def test_without_an_alias_the_topic_name_counts_and_no_alias_changes() -> None:
    aliases = opened(1)
    aliases.resolve(b"a", 1)
    assert aliases.resolve(b"b", None) == b"b"
    assert aliases.resolve(b"", 1) == b"a"


@pytest.mark.parametrize(
    ("maximum", "alias", "allowed"),
    [(3, 0, "1 to 3"), (3, 4, "1 to 3"), (3, 65535, "1 to 3"), (0, 1, "none"), (0, 0, "none")],
)
@pytest.mark.parametrize("topic", [b"", b"a"])
def test_an_alias_out_of_range_is_invalid(
    topic: bytes, maximum: int, alias: int, allowed: str
) -> None:
    with pytest.raises(ProtocolError) as raised:
        opened(maximum).resolve(topic, alias)
    assert raised.value.reason_code == ReasonCode.TOPIC_ALIAS_INVALID
    assert raised.value.reason == f"topic alias {alias}; allowed: {allowed}"


@pytest.mark.parametrize("alias", [None, 2])
@pytest.mark.parametrize("used_before", [True, False])
def test_nothing_to_find_the_topic_name_by_is_a_protocol_error(
    alias: int | None, used_before: bool
) -> None:
    aliases = opened(2)
    if used_before:
        aliases.resolve(b"a", 1)
    with pytest.raises(ProtocolError) as raised:
        aliases.resolve(b"", alias)
    assert raised.value.reason_code == ReasonCode.PROTOCOL_ERROR


def test_connections_share_no_aliases() -> None:
    figures = InboundFigures()
    opened(1, figures).resolve(b"a", 1)
    with pytest.raises(ProtocolError):
        opened(1, figures).resolve(b"", 1)


def test_a_connection_without_aliases_has_no_array() -> None:
    aliases = opened(65_535)
    aliases.resolve(b"a", None)
    with pytest.raises(ProtocolError):
        aliases.resolve(b"", 1)
    assert not aliases._topics


def test_figures() -> None:
    figures = InboundFigures()
    aliases = opened(2, figures)
    aliases.resolve(b"12345", 1)
    aliases.resolve(b"12345", 1)  # set again, to the same
    aliases.resolve("ä".encode(), 2)
    aliases.resolve(b"", 1)
    aliases.resolve(b"1234567", 1)
    for _ in range(4):
        aliases.resolve(b"", 1)
    aliases.resolve(b"", 2)
    assert figures.values() == {
        "hits": 6,
        "mappings": 4,
        "evictions": 1,
        "bytes_saved": (5 - 3) + 4 * (7 - 3) + (2 - 3) - 4 * 3,
        "bytes_held": 9,
        "hit_rate": 60.0,
    }
    other = opened(1, figures)
    other.resolve(b"abc", 1)
    assert figures.bytes_held == 12
    for each in (aliases, aliases, other):
        each.close()
    assert figures.bytes_held == 0


def test_before_the_first_alias_nothing_is_counted() -> None:
    assert set(InboundFigures().values().values()) == {0}


STEPS = st.lists(
    st.tuples(st.sampled_from([b"", b"", b"a", b"b/c", b"\xc3"]), st.none() | st.integers(0, 5))
)


@given(STEPS, st.integers(0, 4))
def test_it_does_what_a_dictionary_does(
    steps: list[tuple[bytes, int | None]], maximum: int
) -> None:
    figures, model = InboundFigures(), dict[int, bytes]()
    aliases = opened(maximum, figures)
    for topic, alias in steps:
        allowed = alias is None or 1 <= alias <= maximum
        if not allowed or not (topic or (alias is not None and alias in model)):
            with pytest.raises(ProtocolError):
                aliases.resolve(topic, alias)
            continue
        if topic and alias is not None:
            model[alias] = topic
        assert aliases.resolve(topic, alias) == (topic or model[alias or 0])
        assert len(aliases._topics) in (0, maximum + 1)
    assert figures.bytes_held == sum(map(len, model.values()))
    aliases.close()
    assert figures.bytes_held == 0
