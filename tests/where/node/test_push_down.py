from gateway.where.language.expression import Expression
from gateway.where.language.spelling import spell
from gateway.where.node.push_down import push_down
from gateway.where.rule import compile_rule
from tests.support.table import table

USUAL = "DEADBAND(payload.value, 0.5) OR EVERY(300)"


def spelled(expression: Expression | None) -> str | None:
    return None if expression is None else spell(expression)


@table(
    ("text", "node", "residual"),
    [
        ("payload.value > 5", "payload.value > 5", None),
        ("value > 5 AND LENGTH(unit) = 2", "payload.value > 5", "LENGTH(payload.unit) = 2"),
        (
            "value > 5 AND (unit = 'K' AND value < $received_at)",
            "payload.value > 5 AND payload.unit = 'K'",
            "payload.value < $received_at",
        ),
        (
            "value IN (1, '2') OR unit IS NULL",
            "payload.value IN (1, '2') OR payload.unit IS NULL",
            None,
        ),
        ("(value = 1) IS TRUE", "(payload.value = 1) IS TRUE", None),
        (
            "value BETWEEN 1 AND 2 OR NOT unit",
            "payload.value BETWEEN 1 AND 2 OR NOT payload.unit",
            None,
        ),
        # What is known of every reading is worked out beforehand.
        (f"TOPIC_MATCHES('sensors/#') AND ({USUAL})", USUAL, None),
        ("topic[2] = 'humidity' OR value > 5", "FALSE OR payload.value > 5", None),
        ("qos = 1 AND NOT retain AND username IS NULL AND $user.k IS NULL", None, None),
        ("topic[2] = 'humidity'", "FALSE", None),
        ("nope > 1", "NULL", None),
        ("payload.value.x > 1", "NULL", None),
        # What a node does not know or cannot do.
        ("payload.time > 5", None, "payload.time > 5"),
        ("payload LIKE '%5%'", None, "payload LIKE '%5%'"),
        ("value + 1 > 5", None, "payload.value + 1 > 5"),
        ("(value > 5) = TRUE", None, "(payload.value > 5) = TRUE"),
        ("CASE WHEN value THEN 1 END", None, "CASE WHEN payload.value THEN 1 ELSE NULL END"),
        (f"value = '{'x' * 65}'", None, f"payload.value = '{'x' * 65}'"),
        # Memory: all of it, or none.
        (USUAL, USUAL, None),
        (f"({USUAL}) AND value > 5", f"({USUAL}) AND payload.value > 5", None),
        (
            f"({USUAL}) AND value > 5 AND $received_at > 5",
            "payload.value > 5",
            f"({USUAL}) AND $received_at > 5",
        ),
        ("value > 5 AND SENT(value) IS NULL", "payload.value > 5", "SENT(payload.value) IS NULL"),
        ("value > 5 AND CHANGED(unit)", None, "payload.value > 5 AND CHANGED(payload.unit)"),
        ("value > 5 AND PREV(value) > 5", None, "payload.value > 5 AND PREV(payload.value) > 5"),
        ("DEADBAND(value, unit)", None, "DEADBAND(payload.value, payload.unit)"),
        ("DEADBAND(value, 'x')", None, "DEADBAND(payload.value, 'x')"),
        ("DEADBAND(value + 1, 1)", None, "DEADBAND(payload.value + 1, 1)"),
        ("DEADBAND(payload.time, 1)", None, "DEADBAND(payload.time, 1)"),
    ],
)
def test_split(text: str, node: str | None, residual: str | None) -> None:
    split = push_down(compile_rule(text).expression, "sensors/n1/temperature")
    assert (spelled(split.node), spelled(split.residual)) == (node, residual)
