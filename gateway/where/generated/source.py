"""The source of a generated function while it is written."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from gateway.mqtt.message import Message
from gateway.where.evaluation.closures import Compiler
from gateway.where.language.conversions import to_boolean
from gateway.where.language.expression import (
    Expression,
)

_DEEPEST: Final = 40
"""Levels of indentation from which on a part is called as a closure; Python allows 100."""

Writers = Mapping[type[Expression], Callable[["Source", Any], str]]
"""What writes a kind of node, and returns the name of the variable that has its value."""


class Source:
    """The function as far as it is written: lines, and the namespace that they use."""

    def __init__(self, compiler: Compiler, values: Writers, conditions: Writers) -> None:
        self._compiler = compiler
        self._values = values
        self._conditions = conditions
        self._lines: list[str] = []
        self._indent = 1
        self._locals = 0
        self._names: dict[str, Any] = {}

    def function(self, expression: Expression) -> Callable[[Message], Any]:
        """Write the function for a whole tree and make it."""
        self.line(f"return {self.truth(expression)}")
        parameters = "".join(f", {name}={name}" for name in self._names)
        source = "\n".join([f"def evaluate(m{parameters}):", *self._lines])
        namespace: dict[str, Any] = {"__builtins__": {}, **self._names}
        exec(compile(source, "<where>", "exec"), namespace)  # noqa: S102 - of the validated tree
        evaluate: Callable[[Message], Any] = namespace.pop("evaluate")  # no cycle
        return evaluate

    def line(self, text: str) -> None:
        """Write a statement."""
        self._lines.append("    " * self._indent + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Write what follows below `head`."""
        self.line(head)
        self._indent += 1
        yield
        self._indent -= 1

    def name(self, value: Any) -> str:
        """Return by which name the source knows `value`."""
        known = next((name for name, each in self._names.items() if each is value), None)
        if known is None:
            known = f"K{len(self._names) + 1}"
            self._names[known] = value
        return known

    def local(self) -> str:
        """Return a local variable that nothing else uses."""
        self._locals += 1
        return f"v{self._locals}"

    def value(self, expression: Expression) -> str:
        """Write what gives the value of `expression`; return the variable that has it."""
        if self._compiler.shares(expression):
            return self._called(self._compiler.value(expression))
        write = self._values.get(type(expression))
        if write is not None and self._indent < _DEEPEST:
            return write(self, expression)
        if type(expression) in self._conditions and self._indent < _DEEPEST:
            return self.truth(expression)
        return self._called(self._compiler.value(expression))

    def truth(self, expression: Expression) -> str:
        """Write what gives the TO_BOOLEAN of `expression`; return the variable that has it."""
        write = self._conditions.get(type(expression))
        if write is not None and self._indent < _DEEPEST and not self._compiler.shares(expression):
            return write(self, expression)
        if type(expression) not in self._values or self._indent >= _DEEPEST:
            return self._called(self._compiler.truth(expression))
        value = self.value(expression)
        result = self.local()
        self.line(f"{result} = {value}")
        with self.block(f"if {result} is not True and {result} is not False:"):
            self.line(f"{result} = {self.name(to_boolean)}({result})")
        return result

    def _called(self, closure: Callable[[Message], Any]) -> str:
        result = self.local()
        self.line(f"{result} = {self.name(closure)}(m)")
        return result
