from gateway.mqtt.message import Message
from gateway.where.compile import compile_where
from tests.support.table import table

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
