from gateway.mqtt.message import Message
from gateway.where.compile import compile_where
from gateway.where.language.expression import Expression, Literal, Not
from gateway.where.language.parser import parse
from tests.support.table import table


@table(
    ("text", "folded"),
    [
        ("1 + 2 * 3 = 7", "TRUE"),
        ("a = 2 * 3", "a = 6"),
        ("a IN (1 + 1, NULL)", "a IN (2, NULL)"),
        ("CASE WHEN a THEN 1 / 0 ELSE UPPER('x') END", "CASE WHEN a THEN NULL ELSE 'X' END"),
        ("a = NULL", "NULL"),
        ("a = NULL OR b", "NULL OR b"),
        ("CONCAT(a, NULL) IS NULL", "TRUE"),
        ("COALESCE(a, NULL) IS NULL", "COALESCE(a, NULL) IS NULL"),
        ("a BETWEEN NULL AND 4", "a BETWEEN NULL AND 4"),
        ("a + NULL * 2", "NULL"),
        ("CAST('5' AS INTEGER) = payload.x", "5 = payload.x"),
        ("TOPIC_MATCHES('a') AND 'x' LIKE '_'", "TOPIC_MATCHES('a') AND TRUE"),
    ],
)
def test_fold(text: str, folded: str) -> None:
    assert repr(compile_where(text).expression) == repr(parse(folded))


def test_folding_tells_numbers_from_truth_values() -> None:
    expression: Expression = compile_where("NOT 1").expression
    assert not isinstance(expression, Not)
    assert isinstance(expression, Literal)
    assert expression.value is False


MESSAGE = Message(
    "a", b'{"clientid": "x"}', client_id="anna", username="a", user_properties=(("username", "u"),)
)

EXPRESSIONS = [
    ("$clientid = 'anna'", True, None),
    ("$username = 'a'", True, None),
    ("$clientid IS NULL AND $username IS NULL", False, True),
    ("NOT ($clientid LIKE 'b%' OR UPPER($username) IN ('X', 'Y'))", True, None),
    ("CASE WHEN $clientid = 'anna' THEN TRUE ELSE FALSE END", True, False),
    ("COALESCE($username, 'nobody') = 'nobody'", False, True),
    ("$topic = 'a'", True, True),
    ("clientid = 'anna'", True, None),
    ("\"username\" = 'u' AND $user.username = 'u'", True, True),
    ("payload.clientid = 'x'", True, True),
]


@table(("text", "known", "unknown"), EXPRESSIONS)
def test_without_identity_a_publisher_is_null(
    text: str, *, known: bool | None, unknown: bool | None
) -> None:
    assert compile_where(text).evaluate(MESSAGE) is known
    assert compile_where(text, identity=False).evaluate(MESSAGE) is unknown


def test_what_can_never_pass_without_identity_says_so() -> None:
    assert compile_where("$clientid = 'anna'", identity=False).never_true
    assert not compile_where("$clientid = 'anna'").never_true
