"""The node's filter under a real MicroPython gives what it gives under CPython."""

import json
import struct
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from node.filter import Filter

from gateway.where.node.node_program import ProgramLimitError, encode_program
from gateway.where.node.push_down import push_down
from gateway.where.rule import compile_rule
from tests.support.nodes import micropython as interpreter
from tests.support.where.readings import (
    TOPIC,
    NodeValue,
    Sample,
    node_expressions,
    node_rules,
    samples,
)

SCRIPT = Path(__file__).parent / "scripts" / "filter_runs.py"
pytestmark = pytest.mark.micropython

Run = tuple[str, list[Sample]]


def runs_of(texts: list[tuple[str, list[Sample]]]) -> list[Run]:
    runs = []
    for text, examples in texts:
        node = push_down(compile_rule(text).expression, TOPIC).node
        try:
            runs.append(("011004" if node is None else encode_program(node).hex(), examples))
        except ProgramLimitError:
            continue
    return runs


def line_of(program: str, examples: list[Sample]) -> tuple[str, list[tuple[object, ...]]]:
    sent: list[tuple[object, ...]] = [(_sent(value), unit, now) for value, unit, now in examples]
    return program, sent


def _sent(value: NodeValue) -> object:
    return "float:" + struct.pack("<d", value).hex() if isinstance(value, float) else value


def expected_of(runs: list[Run]) -> list[str]:
    lines = []
    for program, examples in runs:
        node = Filter(bytes.fromhex(program))
        lines += [f"{node.evaluate(*each)} {node.passes(*each)}" for each in examples]
    return lines


@settings(
    max_examples=10,
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.large_base_example,
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
    ],
)
@given(st.lists(st.tuples(node_expressions() | node_rules(), samples()), min_size=20, max_size=40))
def test_both_pythons_send_the_same(
    micropython: str, texts: list[tuple[str, list[Sample]]]
) -> None:
    runs = runs_of(texts)
    heard = "".join(json.dumps(line_of(*run)) + "\n" for run in runs)
    assert interpreter.run(micropython, SCRIPT, heard=heard).splitlines() == expected_of(runs)
