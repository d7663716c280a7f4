"""Expressions of the `$where` language and messages they may meet, for Hypothesis."""

import json
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from gateway.mqtt.message import Message
from gateway.where.language.lexer import KEYWORDS

_KEYS = ["a", "b", "temp", "end", "x-y", "温度"]
_WORDS = [
    *("", "a", "abc", "ABC", "true", "FALSE", "5", "-5", "+7", "5.", ".5", "2.50", "1e400", "0x10"),
    *(
        "9007199254740993",
        "99999999999999999999",
        " 5",
        "50% off",
        "a_b",
        "温度计",
        "😀",
        "\u017f",
        "nan",
    ),
]
_NUMBERS = [
    *(
        "0",
        "1",
        "5",
        "2.5",
        "1e308",
        "0.49999999999999994",
        "9007199254740993",
        "9007199254740992.0",
    ),
    *("9223372036854775807", "9223372036854775808", "3.", ".25"),
]
_TOPICS = ["a", "a/b", "a/", "/a", "sensor/room1/temp", "$SYS/a", "a/b/c/d"]
_FILTERS = ["#", "+", "a/#", "a/+", "+/b/#", "sensor/+/temp", "$SYS/#", "/+"]
_FIELDS = [
    *("topic", "topic[0]", "topic[7]", "qos", "retain", "clientid", "username", "payload"),
    *(
        "payload.a",
        "payload.b.a",
        "payload[0]",
        "payload.a[1].b",
        "payload.end",
        "a",
        "temp",
        "温度",
    ),
    *('"x-y"', "$user.a", "$user.end", "content_type", "$correlation_data", "$payload_size"),
    *("$message_expiry", "$received_at", "$payload_format", "nope", "response_topic"),
]
_TYPES = ["INTEGER", "real", "Text", "BOOL"]
_TESTS = ["IS NULL", "IS NOT NULL", "IS TRUE", "IS NOT TRUE", "IS FALSE", "IS NOT FALSE"]
_PATTERNS = ["", "%", "_", "a%", "%a", "%b%", "a%c", "_%b%_", "%a_%", "5", "%_b_c%", "%__%"]


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


_words = st.sampled_from(_WORDS) | st.text(max_size=5)
_texts = _words.map(_quoted)
_constants = st.sampled_from([*_NUMBERS, "NULL", "TRUE", "FALSE"])
_fields = st.sampled_from(_FIELDS)
_topic_tests = st.sampled_from([f"TOPIC_MATCHES('{topic_filter}')" for topic_filter in _FILTERS])
_leaves = st.sampled_from(
    [*[_fields] * 5, *[_texts] * 2, *[_constants] * 2, _topic_tests]  # so many of each
).flatmap(lambda leaves: leaves)


def _joined(
    operand: SearchStrategy[str], operators: list[str], operands: int
) -> SearchStrategy[str]:
    steps = st.lists(
        st.tuples(st.sampled_from(operators), operand), min_size=1, max_size=operands - 1
    )
    return st.builds(
        lambda first, rest: " ".join([first, *(f"{symbol} {part}" for symbol, part in rest)]),
        operand,
        steps,
    )


def _calls(operand: SearchStrategy[str]) -> SearchStrategy[str]:
    counts = {"UPPER": (1, 1), "lower": (1, 1), "LENGTH": (1, 1), "TRIM": (1, 1), "SUBSTR": (2, 3)}
    counts |= {"INSTR": (2, 2), "CONCAT": (1, 3), "ABS": (1, 1), "ROUND": (1, 1), "FLOOR": (1, 1)}
    counts |= {"CEIL": (1, 1), "COALESCE": (1, 3), "NULLIF": (2, 2)}

    def call(name: str) -> SearchStrategy[str]:
        fewest, most = counts[name]
        arguments = st.lists(operand, min_size=fewest, max_size=most)
        return arguments.map(lambda texts: f"{name}({', '.join(texts)})")

    return st.sampled_from(sorted(counts)).flatmap(call)


def _cases(operand: SearchStrategy[str]) -> SearchStrategy[str]:
    branches = st.lists(
        st.builds("WHEN {} THEN {}".format, operand, operand), min_size=1, max_size=2
    )
    subject = st.just("") | operand
    otherwise = st.just("") | operand.map("ELSE {}".format)
    return st.builds(
        lambda x, whens, last: " ".join(["CASE", x, *whens, last, "END"]),
        subject,
        branches,
        otherwise,
    )


def _compound(inner: SearchStrategy[str]) -> SearchStrategy[str]:
    operand = inner.map(lambda text: f"({text})")
    nots = st.sampled_from(["", "NOT "])
    elements = st.lists(operand, min_size=1, max_size=3).map(", ".join)
    return st.one_of(
        _joined(operand, ["AND"], 3),
        _joined(operand, ["OR"], 3),
        _joined(operand, ["+", "-"], 3),
        _joined(operand, ["*", "/", "%"], 3),
        _joined(operand, ["=", "!=", "<>", "<", "<=", ">", ">="], 2),
        operand.map("NOT {}".format),
        st.builds("{}{}".format, st.sampled_from(["+", "-"]), operand),
        st.builds("{} {}".format, operand, st.sampled_from(_TESTS)),
        st.builds("{} {}IN ({})".format, operand, nots, elements),
        st.builds("{} {}IN ('a', 'abc', '5')".format, operand, nots),
        st.builds("{} {}BETWEEN {} AND {}".format, operand, nots, operand, operand),
        st.builds("{} {}LIKE '{}'".format, operand, nots, st.sampled_from(_PATTERNS)),
        st.builds("CAST({} AS {})".format, operand, st.sampled_from(_TYPES)),
        _calls(operand),
        _cases(operand),
    )


def expressions() -> SearchStrategy[str]:
    """Expressions that are accepted."""
    return st.recursive(_leaves, _compound, max_leaves=10)


def conjunctions() -> SearchStrategy[str]:
    """Expressions that ask for at least one equality, of a field and a constant mostly."""
    constants = _constants | _texts
    equality = st.one_of(
        st.builds("{} = {}".format, _fields, constants),
        st.builds("{} = {}".format, constants, _fields),
        st.builds("{} = -{}".format, _fields, st.sampled_from(_NUMBERS)),
    )
    plain = expressions().map("({})".format)
    grouped = st.builds("({} AND {})".format, equality, equality)
    rest = st.lists(st.one_of(equality, grouped, plain), max_size=2)
    return st.builds(lambda first, more: " AND ".join([first, *more]), equality, rest)


def colliding_filters() -> SearchStrategy[str]:
    """Conjunctions, mostly, of comparisons that `colliding_messages` often make TRUE."""
    fields = ["a", "payload.a", "$user.a", "qos", "clientid", "topic[0]"]
    fields += ["payload.a", "ABS(a)", "UPPER(payload.a)", "payload.a + 1", "CAST(a AS INTEGER)"]
    constants = ["1", "1.0", "'1'", "'1.0'", "5", "'5'", "'a'", "'true'", "'True'", "TRUE"]
    comparison = st.builds(
        "{} {} {}".format,
        st.sampled_from(fields),
        st.sampled_from(["=", "=", "=", "!=", "<", "<=", ">", ">="]),
        st.sampled_from(constants),
    )
    numbers = st.sampled_from(["0", "1", "1.0", "2.5", "5", "6", "'1'"])
    between = st.builds("{} BETWEEN {} AND {}".format, st.sampled_from(fields), numbers, numbers)
    test = comparison | comparison | between
    return test | _joined(test, ["AND", "AND", "OR"], 3)


def rule_expressions() -> SearchStrategy[str]:
    """Expressions that a rule accepts, most of them with functions that remember."""
    argument = st.sampled_from(["a", "payload.a", "qos", "payload.b", "topic[1]"]) | expressions()
    calls = st.one_of(
        st.builds("{}({})".format, st.sampled_from(["PREV", "sent", "CHANGED", "PREV"]), argument),
        st.builds("DEADBAND({}, {})".format, argument, st.sampled_from(_NUMBERS) | _leaves),
        st.builds("EVERY({})".format, st.sampled_from(["0", "1", "2.5", "'1'"]) | _leaves),
    )
    return st.recursive(st.one_of(calls, calls, _leaves), _compound, max_leaves=6)


def token_soup() -> SearchStrategy[str]:
    """Texts made of the language's tokens, most of which are not accepted."""
    tokens = [
        *_FIELDS,
        *_NUMBERS,
        *_TESTS,
        *sorted(KEYWORDS),
        *("!=", "<>", "<=", ">=", *"=<>+-*/%(),.[]"),
        *(
            "'a'",
            "'!'",
            "'",
            '"',
            "`",
            "''",
            '""',
            "$",
            "$user",
            "$nope",
            "--",
            "/*",
            "5x",
            "1e999",
        ),
        *("LENGTH(", "SUBSTR", "PREV(a)", "foo(", "TOPIC_MATCHES('a/#/b')", "INTEGER", "\0", "=="),
    ]
    return st.lists(st.sampled_from(tokens) | expressions(), max_size=12).map(" ".join)


def _json_values() -> SearchStrategy[Any]:
    scalars = st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**65), 2**65),
        st.integers(-6, 6),
        st.floats(allow_nan=False, allow_infinity=False),
        _words,
    )
    return st.recursive(
        scalars,
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_KEYS), inner, max_size=3)
        ),
        max_leaves=6,
    )


_objects = st.dictionaries(st.sampled_from(_KEYS), _json_values(), min_size=2, max_size=5)
_payloads = st.one_of(
    _objects.map(lambda value: json.dumps(value, ensure_ascii=False).encode()),
    _objects.map(lambda value: json.dumps(value, indent=1).encode()),
    _json_values().map(lambda value: json.dumps(value).encode()),
    st.binary(max_size=20),
    _words.map(str.encode),
    st.sampled_from([b'{"a":1}x', b'{"a":NaN}', b'{"a":"\\ud800"}', b'{"a":1e999}', b"[" * 2000]),
    st.text('[{]}"\\ux0,:', min_size=100, max_size=300).map(lambda text: json.dumps(text).encode()),
)


def messages() -> SearchStrategy[Message]:
    """Messages with any payload and any choice of optional fields."""
    return st.builds(
        Message,
        st.sampled_from(_TOPICS),
        _payloads,
        st.integers(0, 2),
        st.booleans(),
        client_id=st.none() | _words,
        username=st.none() | _words,
        received_at=st.none() | st.integers(0, 2**42),
        content_type=st.none() | _words,
        response_topic=st.none() | _words,
        correlation_data=st.none() | st.binary(max_size=4),
        message_expiry=st.none() | st.integers(0, 2**32 - 1),
        payload_format=st.none() | st.integers(0, 1),
        user_properties=st.lists(st.tuples(st.sampled_from(_KEYS), _words), max_size=3).map(tuple),
    )


def colliding_messages() -> SearchStrategy[Message]:
    """Messages whose few values are equal to one another in every way that the language knows."""
    words = st.sampled_from(["1", "1.0", "5", "a", "true"])
    values = st.sampled_from([1, 1.0, 5, "1", "1.0", "5", "a", "true", True, True, False, None])
    return st.builds(
        Message,
        st.sampled_from(["a", "1", "5/b"]),
        values.map(lambda value: json.dumps({"a": value}).encode()),
        st.integers(0, 2),
        client_id=words,
        user_properties=st.just(()) | words.map(lambda word: (("a", word),)),
    )


def histories() -> SearchStrategy[list[Message]]:
    """Messages of few topics one after the other, with values that often come again."""
    values = st.sampled_from([1, 1.0, 1.5, 2, 7, True, "1", "x", None, [1], {"a": 1}, 2**63 - 1])
    payloads = st.dictionaries(st.sampled_from(["a", "b"]), values, max_size=2)
    steps = st.builds(
        Message,
        st.sampled_from(["s/1", "s/2"]),
        payloads.map(lambda value: json.dumps(value).encode()),
        st.integers(0, 1),
        received_at=st.integers(0, 9).map(lambda ticks: 1_000_000 + 500 * ticks) | st.none(),
    )
    return st.lists(steps | messages(), max_size=8)
