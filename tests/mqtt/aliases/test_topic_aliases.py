"""What a topic alias that a client set stands for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.mqtt.aliases.topic_aliases import InboundAliases, InboundFigures
from gateway.mqtt.errors import ProtocolError
from gateway.mqtt.reason_codes import ReasonCode
from tests.support.table import table


def opened(maximum: int, figures: InboundFigures | None = None) -> InboundAliases:
    return InboundAliases(maximum, figures or InboundFigures())


@table(
    ("maximum", "alias", "allowed"),
    [(3, 0, "1 to 3"), (3, 4, "1 to 3"), (3, 65535, "1 to 3"), (0, 1, "none"), (0, 0, "none")],
)
@table("topic", [b"", b"a"])
def test_an_alias_out_of_range_is_invalid(
    topic: bytes, maximum: int, alias: int, allowed: str
) -> None:
    with pytest.raises(ProtocolError) as raised:
        opened(maximum).resolve(topic, alias)
    assert raised.value.reason_code == ReasonCode.TOPIC_ALIAS_INVALID
    assert raised.value.reason == f"topic alias {alias}; allowed: {allowed}"


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


STEPS = st.lists(
    st.tuples(st.sampled_from([b"", b"", b"a", b"b/c", b"\xc3"]), st.none() | st.integers(0, 5))
)


@pytest.mark.uncovered
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
