"""Gateway's programs, node's interpreter and docs/understand/node-filter.md mean the same."""

import re
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from node import filter as node_filter
from node import frames

from gateway.mqtt.message import Message
from gateway.where.compile import compile_where
from gateway.where.language.expression import Expression, Literal
from gateway.where.node import node_program
from gateway.where.node.node_program import ProgramLimitError, encode_program
from gateway.where.node.push_down import push_down
from gateway.where.rule import RuleWhere, compile_rule
from tests.support.where.readings import (
    TOPIC,
    Sample,
    message_of_sample,
    node_expressions,
    node_rules,
    samples,
)
from tests.support.where.sqlite import evaluated

PAGE = (Path(__file__).parents[2] / "docs/understand/node-filter.md").read_text()


def both(one: bool | None, other: bool | None) -> bool | None:
    return False if False in (one, other) else None if None in (one, other) else True


def program_of(expression: Expression) -> bytes:
    try:
        return encode_program(expression)
    except ProgramLimitError:
        assume(False)
        raise


@settings(max_examples=5 * settings().max_examples)
@given(node_expressions(), samples())
def test_node_and_residual_give_what_the_whole_gives(text: str, examples: list[Sample]) -> None:
    whole = compile_where(text)
    split = push_down(whole.expression, TOPIC)
    node = node_filter.Filter(program_of(split.node or Literal(True)))
    residual = split.residual or Literal(True)
    for sample in examples:
        message = message_of_sample(sample)
        result = both(node.evaluate(*sample), evaluated(residual, message))
        assert result is whole.evaluate(message), (sample, split)


@settings(max_examples=5 * settings().max_examples)
@given(node_rules(), samples())
def test_what_is_sent_and_passes_the_residual_is_what_the_rule_takes(
    text: str, examples: list[Sample]
) -> None:
    whole = compile_rule(text)
    split = push_down(whole.expression, TOPIC)
    node = node_filter.Filter(program_of(split.node or Literal(True)))
    residual = RuleWhere("", split.residual or Literal(True))
    taken, arrived = [], []
    for sample in examples:
        message = message_of_sample(sample)
        taken.append(_take(whole, message_of_sample(sample)))
        arrived.append(node.passes(*sample) and _take(residual, message))
    assert arrived == taken, split


def _take(rule: RuleWhere, message: Message) -> bool:
    result = rule.evaluate(message)
    rule.record(message, result)
    return result is True


def page_table(title: str) -> dict[int, str]:
    """Return the page's names by their byte."""
    section = PAGE.split(f"### {title}\n")[1].split("\n#")[0]
    rows = re.findall(r"0x([0-9a-f]{2}) ([A-Z_]+)", section)
    return {int(byte, 16): name for byte, name in rows}


def test_the_page_lists_every_opcode_and_operand() -> None:
    opcodes = page_table("Instructions")
    comparisons = dict(zip(range(0x20, 0x26), ("EQ", "NE", "LT", "LE", "GT", "GE"), strict=True))
    for name in {*opcodes.values()} - {*comparisons.values()}:
        byte = getattr(node_program, name)
        assert byte == getattr(node_filter, f"_{name}")
        assert opcodes[byte] == name
    assert {byte: opcodes[byte] for byte in comparisons} == comparisons
    assert list(node_program.COMPARE.values()) == list(comparisons)
    assert comparisons.keys() | set(node_filter._TAKES) | {0x10, 0x11, 0x40, 0x41} == opcodes.keys()
    operands = page_table("Operands")
    assert operands == {getattr(node_filter, f"_{name}"): name for name in operands.values()}
    assert list(operands) == list(range(8))


def test_the_bounds_are_one() -> None:
    assert node_filter._VERSION == node_program.VERSION
    assert node_filter._PROGRAM_MAX == node_program.PROGRAM_MAX < frames._BODY_MAX
    assert node_filter._STACK_MAX == node_program.STACK_MAX
    assert f"{node_program.PROGRAM_MAX} bytes" in PAGE
    assert f"{node_program.STACK_MAX} truth values" in PAGE


@pytest.mark.parametrize("name", ["deadband", "between"])
def test_the_pages_examples(name: str) -> None:
    found = re.search(rf"```where {name}\n(.*?)\n```\n.*?```hex {name}\n(.*?)```", PAGE, re.DOTALL)
    assert found
    split = push_down(compile_rule(found[1]).expression, TOPIC)
    assert split.node is not None
    assert encode_program(split.node) == bytes.fromhex(found[2])
    node_filter.Filter(bytes.fromhex(found[2]))


@given(st.binary(max_size=220), samples())
def test_no_bytes_make_a_node_fail(data: bytes, examples: list[Sample]) -> None:
    try:
        node = node_filter.Filter(b"\x01" + data)
    except ValueError:
        return
    for sample in examples:
        assert node.evaluate(*sample) in (True, False, None)
