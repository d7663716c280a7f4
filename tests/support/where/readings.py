"""Readings of a node and expressions that a node decides wholly, in part or not at all."""

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from gateway.bridges.readings.reading import Reading
from gateway.mqtt.message import Message

TOPIC = "sensors/n1/temperature"

NodeValue = bool | int | float | str | tuple[int, int]
Sample = tuple[NodeValue, str | None, int]
"""A value as the node has it, its unit, and the node's clock in milliseconds."""

_NUMBERS = ["0", "1", "21.5", "-3", "2.50", ".1", "5e-1", "21.37", "1e300", "5e-324"]
_NUMBERS += [
    "9007199254740993",
    "9007199254740992.0",
    "-9223372036854775808",
    "1.7976931348623157e308",
]
_TEXTS = [
    "",
    "a",
    "true",
    "FALSE",
    "21.5",
    "+.5e1",
    "5.",
    "x5",
    "1e400",
    "°C",
    "K",
    "9007199254740993",
]
_CONSTANTS = [*_NUMBERS, *(f"'{text}'" for text in _TEXTS), "NULL", "TRUE", "FALSE"]
_KNOWN = ["payload.value", "value", "payload.unit", "unit"]
_OTHER = ["qos", "topic", "topic[1]", "retain", "username", "$user.x", "nope", "payload.value.a"]
_UNKNOWN = ["payload.time", "$payload_size", "LENGTH(unit)", "value + 1", "$received_at"]

_constants = st.sampled_from(_CONSTANTS)
_known = st.sampled_from(_KNOWN)
_operands = st.one_of(_known, _known, _constants, st.sampled_from(_OTHER))
_all = st.one_of(_operands, _operands, _operands, st.sampled_from(_UNKNOWN))
_orders = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])
_tests = st.sampled_from(["IS NULL", "IS NOT NULL", "IS TRUE", "IS NOT FALSE"])
_memory = st.one_of(
    st.builds("DEADBAND({}, {})".format, st.sampled_from(["value", "unit"]), _constants),
    st.builds("DEADBAND(value, {})".format, st.sampled_from(_NUMBERS)),
    st.builds("EVERY({})".format, st.sampled_from(["2", "0.5", "'1'", "1e308", "NULL"])),
)
_more_memory = st.sampled_from(["CHANGED(value)", "PREV(value) = 1", "SENT(value) > 2"])
_usual = st.sampled_from(
    [
        *("DEADBAND(value, 2)", "EVERY(2)", "(DEADBAND(value, 3) OR EVERY(4))", "CHANGED(value)"),
        *("value > 21", "value < 23", "unit = 'K'", "value % 2 = 0", "value + 1 < 24"),
        *("(SENT(value) IS NULL OR SENT(value) < value)", "(PREV(value) < value) IS NOT FALSE"),
    ]
)
"""Parts that often change from one reading to the next."""


def _leaves(operands: SearchStrategy[str]) -> SearchStrategy[str]:
    return st.one_of(
        st.builds("{} {} {}".format, operands, _orders, operands),
        st.builds("{} {}".format, operands, _tests),
        st.builds("{} BETWEEN {} AND {}".format, operands, operands, operands),
        st.builds("{} NOT IN ({}, {})".format, operands, operands, operands),
        st.sampled_from(["TOPIC_MATCHES('+/n1/#')", "TOPIC_MATCHES('+/n2/#')"]),
        operands,
    )


def _compound(inner: SearchStrategy[str]) -> SearchStrategy[str]:
    operand = inner.map(lambda text: f"({text})")
    several = st.lists(operand, min_size=2, max_size=3)
    return st.one_of(
        several.map(" AND ".join),
        several.map(" AND ".join),
        several.map(" OR ".join),
        operand.map("NOT {}".format),
        st.builds("{} {}".format, operand, _tests),
    )


def node_expressions() -> SearchStrategy[str]:
    """Expressions without memory, most of which a node decides."""
    leaves = st.one_of(_leaves(_operands), _leaves(_operands), _leaves(_all))
    return st.recursive(leaves, _compound, max_leaves=6)


def node_rules() -> SearchStrategy[str]:
    """Expressions with functions that remember."""
    leaves = st.one_of(_memory, _memory, _leaves(_operands), _leaves(_all), _more_memory)
    mixed = st.lists(_usual, min_size=2, max_size=3).map(" AND ".join)
    return mixed | st.recursive(leaves, _compound, max_leaves=5)


def _values() -> SearchStrategy[NodeValue]:
    return st.one_of(
        st.sampled_from([True, False, 0, 1, 21, 21.5, (215, -1), (2137, -2), (21, 0), (1, 9)]),
        st.sampled_from([20, 21, 22]),
        st.sampled_from([20, 21, 22]),
        st.sampled_from([*_TEXTS, 2**53 + 1, float(2**53), 5e-324, -0.0]),
        st.integers(-(2**63), 2**63 - 1),
        st.floats(allow_nan=False, allow_infinity=False),
        st.tuples(st.integers(-(2**31), 2**31 - 1), st.integers(-9, 9)),
    )


def samples() -> SearchStrategy[list[Sample]]:
    """Samples at rising times."""
    units = st.sampled_from([None, "°C", "K", "true", "5"])
    steps = st.lists(st.tuples(_values(), units, st.integers(0, 2_500)), min_size=1, max_size=10)

    def at_times(samples: list[Sample]) -> list[Sample]:
        clock = 1_000
        timed = []
        for value, unit, step in samples:
            clock += step
            timed.append((value, unit, clock))
        return timed

    return steps.map(at_times)


def message_of_sample(sample: Sample) -> Message:
    """Return the message that the gateway makes of a sample; it accepts it at the node's time."""
    value, unit, clock = sample
    if isinstance(value, tuple):
        mantissa, exponent = value
        value = mantissa * 10**exponent if exponent >= 0 else float(f"{mantissa}e{exponent}")
    reading = Reading("n1", "temperature", value, unit, 1_763_740_000_000)
    topic, payload = reading.topic, reading.payload
    return Message(topic, payload, qos=1, client_id="serial:ttyNODE", received_at=clock)
