"""Each sentence of docs/operate/security.md has tests, and they are there."""

import ast
import re
from functools import cache
from pathlib import Path

from tests.support.table import table

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/operate/security.md"

SENTENCE = re.compile(r"^- (.+?)(?: <!-- (.+) -->)?$", re.MULTILINE)
NAMED = re.compile(r"(tests/[\w/]+\.py)::(test_\w+)")


def sentences() -> list[tuple[str, str]]:
    """Return each sentence of the page's lists, and the tests that it names."""
    return SENTENCE.findall(PAGE.read_text(encoding="utf-8"))


@cache
def names_of(path: Path) -> frozenset[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(node.name for node in tree.body if isinstance(node, functions))


@table(("sentence", "names"), sentences())
def test_a_sentence_has_tests(sentence: str, names: str) -> None:
    found = NAMED.findall(names)
    assert [f"{path}::{test}" for path, test in found] == names.split(), sentence
    for path, test in found:
        assert test in names_of(ROOT / path), f"{path} has no {test}"


def test_the_page_has_as_many_as_it_lists() -> None:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    assert len(sentences()) == sum(line.startswith("- ") for line in lines) > 20
