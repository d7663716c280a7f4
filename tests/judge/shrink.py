"""Makes a program that fails smaller, as long as it fails in the same way."""

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import TypeVar

from tests.judge.programs import Program
from tests.judge.steps import Publish, Step, Together

T = TypeVar("T")


def failure(program: Program) -> str | None:
    """Return the kind of the error that the program ends with, None if it ends well."""
    try:
        program.run()
    except Exception as error:  # noqa: BLE001 - whatever it is
        words = [word for word in str(error).split() if word.isalpha() and len(word) > 3]
        return " ".join([type(error).__name__, *words[:4]])
    return None


def shrink(program: Program, seconds: float) -> Program:
    """Return a smaller program that fails, found within so many seconds."""
    kind, until, found = failure(program), time.monotonic() + seconds, True
    while found:
        found = False
        for smaller in _smaller(program):
            if time.monotonic() > until:
                return program
            if failure(smaller) == kind:
                program, found = smaller, True
                break
    return program


def _smaller(program: Program) -> Iterator[Program]:
    """Give programs without some of the steps, many first, then without some of the messages."""
    steps = program.steps
    for some in _without(steps):
        yield replace(program, steps=some)
    for number, step in enumerate(steps):
        for other in _smaller_steps(step):
            yield replace(program, steps=(*steps[:number], other, *steps[number + 1 :]))


def _smaller_steps(step: Step) -> Iterator[Step]:
    if isinstance(step, Publish):
        for items in _without(step.items):
            yield replace(step, items=items)
    elif isinstance(step, Together):
        for publishes in _without(step.publishes):
            yield replace(step, publishes=publishes)
        for number, one in enumerate(step.publishes):
            for items in _without(one.items):
                fewer = [*step.publishes]
                fewer[number] = replace(one, items=items)
                yield replace(step, publishes=tuple(fewer))


def _without(things: tuple[T, ...]) -> Iterator[tuple[T, ...]]:
    """Give what is left without a half, a quarter and so on of them; never nothing."""
    size = len(things) // 2
    while size:
        for start in range(0, len(things), size):
            if len(things) > size:
                yield things[:start] + things[start + size :]
        size //= 2


def show(program: Program) -> str:
    """Return the program as it can be read."""
    settings = program.settings
    lines = [
        f"{settings.maximum_queued_messages=}, {settings.maximum_inflight=}",
        f"{settings.queue_when_full=}",
    ]
    lines.append(f"{program.durable=}")
    lines += [f"{profile!r}," for profile in program.profiles]
    return "\n".join([*lines, *(f"{step!r}," for step in program.steps)])[:8_000]
