import pytest
from hypothesis import given

from gateway.where.language.expression import canonical_key, walk
from gateway.where.language.parser import parse
from gateway.where.language.spelling import spell, spell_value
from tests.support.table import table
from tests.support.where.strategies import rule_expressions
from tests.support.where.vectors import where_vectors

ACCEPTED = [row["expr"] for row in where_vectors() if "result" in row and len(row["expr"]) < 400]


@pytest.mark.uncovered
@given(rule_expressions())
def test_the_spelling_parses_to_an_equal_tree(text: str) -> None:
    tree = parse(text, stateful=True)
    assert canonical_key(walk(parse(spell(tree), stateful=True))) == canonical_key(walk(tree))


@pytest.mark.uncovered
@table("text", ACCEPTED)
def test_the_vectors_are_spelled(text: str) -> None:
    tree = parse(text)
    assert canonical_key(walk(parse(spell(tree)))) == canonical_key(walk(tree))


@table(
    ("text", "spelled"),
    [
        (" where  A=1 or(b<>'it''s'and not C)", "A = 1 OR b != 'it''s' AND NOT C"),
        ("(a OR b) AND (c AND d)", "(a OR b) AND (c AND d)"),
        ("NOT (a IN (1, 2.50)) AND b NOT LIKE 'x%'", "a NOT IN (1, 2.5) AND b NOT LIKE 'x%'"),
        ("(a IS NOT NULL) = TRUE", "(a IS NOT NULL) = TRUE"),
        ("a LIKE '!%%!_!!' ESCAPE '!'", "a LIKE '!%%!_!!' ESCAPE '!'"),
        ("a LIKE '50!' ESCAPE 'x'", "a LIKE '50!'"),
        ("1-(2-3)-4*(5+6)", "1 - (2 - 3) - 4 * (5 + 6)"),
        ("- - 5 = -(5) - -x", "- -5 = -(5) - -x"),
        (
            '"topic" = "select" OR "NULL" = "a""b" OR "x-y"',
            '"topic" = select OR "NULL" = "a""b" OR "x-y"',
        ),
        ('$PAYLOAD.end."a.b"[0] = $user.null', 'payload.end."a.b"[0] = $user.null'),
        ("$QoS = Topic[1] AND $payload_size", "qos = topic[1] AND $payload_size"),
        ("case x when 1 then 2 end", "CASE x WHEN 1 THEN 2 ELSE NULL END"),
        ("cast(a as bigint) between -1 and +b", "CAST(a AS INTEGER) BETWEEN -1 AND +b"),
        ("topic_matches('a/#') and prev(a) = 1e3", "TOPIC_MATCHES('a/#') AND PREV(a) = 1000.0"),
    ],
)
def test_spelling(text: str, spelled: str) -> None:
    assert spell(parse(text, stateful=True)) == spelled


def test_containers_have_no_literal() -> None:
    assert (spell_value({}), spell_value([1])) == ("JSON object", "JSON array")
