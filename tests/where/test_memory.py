"""What a compiled expression is said to occupy, beside what it does."""

import gc
import tracemalloc

import pytest

from gateway.where.compile import compile_where

EXPRESSIONS = {
    "small": "payload.t > {0}",
    "and": " AND ".join(f"payload.f{{0}}_{n} > {n}.5" for n in range(25)),
    "or": " OR ".join(f"payload.f{{0}}_{n} = {n}" for n in range(25)),
    "in": "payload.x{0} IN (" + ", ".join(f"'{{0}}_{n}'" for n in range(60)) + ")",
    "sum": " + ".join(f"payload.a{{0}}_{n}" for n in range(40)) + " > 5",
    "names": "COALESCE(" + ", ".join(f"a{{0}}_{n}" for n in range(60)) + ") > 2",
    "short patterns": " OR ".join(f"payload LIKE 'a%{{0}}b%{n}'" for n in range(18)),
    "sequences": "payload LIKE '{0}" + "%ab" * 80 + "'",
    "a long segment": "payload LIKE '{0}%" + "".join(map(chr, range(0x4E00, 0x4EC8))) + "_x%'",
    "paths": "payload.a{0}" + ".k" * 80 + " = 1",
    "cases": "CASE" + "".join(f" WHEN payload.x{{0}} = {n} THEN 2" for n in range(18)) + " END = 4",
    "topics": " OR ".join(f"topic_matches('a/{{0}}/{n}/+')" for n in range(15)),
    "a deep topic": "topic_matches('{0}" + "/a" * 250 + "/#')",
    "negations": "NOT " * 31 + "payload.a{0}",
}


@pytest.mark.uncovered
@pytest.mark.parametrize("text", EXPRESSIONS.values(), ids=EXPRESSIONS)
def test_it_is_about_what_is_taken(text: str) -> None:
    compile_where(text.format(99))
    gc.collect()
    tracemalloc.start()
    wheres = [compile_where(text.format(number)) for number in range(8)]
    gc.collect()
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    said = sum(where.bytes for where in wheres)
    assert 0.7 < said / taken < 6
