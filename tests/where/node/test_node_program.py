import pytest

from gateway.where.language.parser import parse
from gateway.where.node.node_program import ProgramLimitError, encode_program
from gateway.where.node.push_down import push_down
from gateway.where.rule import compile_rule
from tests.support.table import table


def program(text: str) -> str:
    node = push_down(compile_rule(text).expression, "sensors/n1/temperature").node
    assert node is not None
    return encode_program(node).hex(" ")


@table(
    ("text", "code"),
    [
        ("value", "01 10 00"),
        ("value IS NULL", "01 11 00"),
        ("value = TRUE", "01 20 00 04"),
        ("unit != 'K'", "01 21 01 07 01 4b"),
        ("value < -2", "01 22 00 05 fe ff ff ff ff ff ff ff"),
        ("value <= 0.5", "01 23 00 06 00 00 00 00 00 00 e0 3f"),
        ("value > unit", "01 24 00 01"),
        ("FALSE >= value OR NULL", "01 25 03 00 10 02 32"),
        ("NOT (value AND unit)", "01 10 00 10 01 31 30"),
        ("value OR unit OR TRUE = unit", "01 10 00 10 01 32 20 04 01 32"),
        ("value IS TRUE", "01 10 00 33"),
        ("value IS NOT FALSE", "01 10 00 34 30"),
        ("(value = unit) IS NULL", "01 20 00 01 35"),
        ("value IN (TRUE, unit)", "01 20 00 04 20 00 01 32"),
        ("value BETWEEN FALSE AND TRUE", "01 25 00 03 23 00 04 31"),
        ("DEADBAND(value, TRUE)", "01 40 05 01 00 00 00 00 00 00 00"),
        ("DEADBAND(value, '0.5')", "01 40 06 00 00 00 00 00 00 e0 3f"),
        ("EVERY(2)", "01 41 05 d0 07 00 00 00 00 00 00"),
        ("EVERY(1e308)", "01 41 02"),
    ],
)
def test_program(text: str, code: str) -> None:
    assert program(text) == code


def test_a_program_has_a_bound() -> None:
    assert len(bytes.fromhex(program(" OR ".join(["value = unit"] * 49) + " OR value"))) == 199
    with pytest.raises(ProgramLimitError, match="a program of 204 bytes: at most 200"):
        program(" OR ".join(["value = unit"] * 51))


def test_the_stack_has_a_bound() -> None:
    assert program("value AND (" * 7 + "unit" + ")" * 7).startswith("01 10 00 10 00")
    with pytest.raises(ProgramLimitError, match="a program that needs a stack of 9: at most 8"):
        program("value OR (value AND (" * 4 + "unit" + "))" * 4)


@pytest.mark.parametrize("text", ["qos = 1", "LENGTH(unit)", "EVERY(unit)", "EVERY('x')"])
def test_what_is_no_part_for_a_node(text: str) -> None:
    with pytest.raises(TypeError, match="push_down gives a node no such part"):
        encode_program(parse(text, stateful=True))
