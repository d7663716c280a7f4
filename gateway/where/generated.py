"""A second tier for expressions that are evaluated often: one Python function for the whole tree.

The source is generated only from the validated tree. Names, literals and everything that the source
calls enter through the namespace as K1, K2, ...; it has no builtins. Chains become consecutive
statements, so that their length costs no nesting. A node without a form of its own here is called
as its closure.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from gateway.mqtt.message import UNKNOWN, Message
from gateway.where.evaluation.closures import (
    Compiler,
    Condition,
    any_equal,
    compare_counted,
    limited_string,
)
from gateway.where.language.conversions import (
    MIRRORED,
    ORDERS,
    compare,
    to_boolean,
    to_number,
    to_string,
)
from gateway.where.language.expression import (
    And,
    Arithmetic,
    BareName,
    Between,
    Call,
    Comparison,
    Expression,
    In,
    IsNull,
    IsTruth,
    Like,
    Literal,
    Not,
    Or,
    PayloadPath,
    SearchedCase,
    SystemField,
    TopicLevel,
    UserProperty,
    walk,
)
from gateway.where.language.functions import FUNCTIONS, OPERATIONS, Function
from gateway.where.language.like import like_matcher
from gateway.where.language.work import liked

_DEEPEST: Final = 40
"""Levels of indentation above which a part is called as a closure; Python allows 100."""

Writers = Mapping[type[Expression], Callable[["Source", Any], str]]
"""Writes a kind of node, and returns the name of the variable with its value."""


class Source:
    """The function written so far: lines, and the namespace that they use."""

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
        """Return the source's name of `value`."""
        known = next((name for name, each in self._names.items() if each is value), None)
        if known is None:
            known = f"K{len(self._names) + 1}"
            self._names[known] = value
        return known

    def local(self) -> str:
        """Return an unused local variable."""
        self._locals += 1
        return f"v{self._locals}"

    def value(self, expression: Expression) -> str:
        """Write code for the value of `expression`; return its variable."""
        if self._compiler.shares(expression):
            return self._called(self._compiler.value(expression))
        write = self._values.get(type(expression))
        if write is not None and self._indent < _DEEPEST:
            return write(self, expression)
        if type(expression) in self._conditions and self._indent < _DEEPEST:
            return self.truth(expression)
        return self._called(self._compiler.value(expression))

    def truth(self, expression: Expression) -> str:
        """Write code for the TO_BOOLEAN of `expression`; return its variable."""
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


_ATTRIBUTES: Final = {"clientid": "client_id"}
_PLAIN_FIELDS: Final = frozenset(
    {
        *("topic", "qos", "retain", "clientid", "username", "content_type", "response_topic"),
        *("payload_format", "message_expiry", "received_at"),
    }
)
"""System fields that are an attribute of the message."""


def _literal(source: Source, expression: Literal) -> str:
    return source.name(expression.value)


def _system_field(source: Source, expression: SystemField) -> str:
    result = source.local()
    if expression.name in _PLAIN_FIELDS:
        source.line(f"{result} = m.{_ATTRIBUTES.get(expression.name, expression.name)}")
    elif expression.name == "payload_size":
        source.line(f"{result} = {source.name(len)}(m.payload)")
    else:
        method = "text" if expression.name == "payload" else "correlation_text"
        source.line(f"{result} = m.{method}()")
    return result


def _cached(source: Source, attribute: str, method: str) -> str:
    """Write code for a value that the message caches."""
    result = source.local()
    source.line(f"{result} = m.{attribute}")
    with source.block(f"if {result} is {source.name(UNKNOWN)}:"):
        source.line(f"{result} = m.{method}()")
    return result


def _topic_level(source: Source, expression: TopicLevel) -> str:
    levels, result = _cached(source, "_levels", "levels"), source.local()
    index, length = source.name(expression.index), source.name(len)
    source.line(f"{result} = {levels}[{index}] if {index} < {length}({levels}) else None")
    return result


def _user_property(source: Source, expression: UserProperty) -> str:
    user, result = _cached(source, "_user", "user"), source.local()
    source.line(f"{result} = {user}.get({source.name(expression.key)})")
    return result


def _bare_name(source: Source, expression: BareName) -> str:
    user, result = _cached(source, "_user", "user"), source.local()
    key = source.name(expression.name)
    with source.block(f"if {key} in {user}:"):
        source.line(f"{result} = {user}[{key}]")
    with source.block("else:"):
        source.line(f"{result} = {_walked(source, (expression.name,))}")
    return result


def _payload_path(source: Source, expression: PayloadPath) -> str:
    return _walked(source, expression.steps)


def _walked(source: Source, steps: tuple[str | int, ...]) -> str:
    result = _cached(source, "_json", "json")
    kind, length = source.name(type), source.name(len)
    for step in steps:
        key = source.name(step)
        if isinstance(step, str):
            found, fits = f"{result}.get({key})", f"is {source.name(dict)}"
        else:
            found = f"{result}[{key}]"
            fits = f"is {source.name(list)} and {key} < {length}({result})"
        source.line(f"{result} = {found} if {kind}({result}) {fits} else None")
    with source.block(f"if {kind}({result}) is {source.name(str)}:"):
        source.line(f"{result} = {source.name(limited_string)}({result})")
    return result


def _arithmetic(source: Source, expression: Arithmetic) -> str:
    """Write a chain flat; further steps leave None unchanged."""
    first, *rest = expression.operands
    result = _number(source, first)
    for symbol, operand in zip(expression.operators, rest, strict=True):
        with source.block(f"if {result} is not None:"):
            number = _number(source, operand)
            operate = source.name(OPERATIONS[symbol])
            source.line(f"{result} = None if {number} is None else {operate}({result}, {number})")
    return result


def _number(source: Source, expression: Expression) -> str:
    value, result, kind = source.value(expression), source.local(), source.local()
    real, integer = source.name(float), source.name(int)
    source.line(f"{result} = {value}")
    source.line(f"{kind} = {source.name(type)}({value})")
    with source.block(f"if {kind} is not {real} and {kind} is not {integer}:"):
        source.line(f"{result} = {source.name(to_number)}({value})")
    return result


def _searched_case(source: Source, expression: SearchedCase) -> str:
    *pairs, otherwise = expression.operands
    result, decided = source.local(), source.local()
    source.line(f"{decided} = False")
    for condition, value in zip(pairs[::2], pairs[1::2], strict=True):
        with source.block(f"if {decided} is False:"):
            holds = source.truth(condition)
            with source.block(f"if {holds}:"):
                source.line(f"{result} = {source.value(value)}")
                source.line(f"{decided} = True")
    with source.block(f"if {decided} is False:"):
        source.line(f"{result} = {source.value(otherwise)}")
    return result


def _call(source: Source, expression: Call) -> str:
    function = FUNCTIONS[expression.function]
    result = source.local()
    if function.compute is FUNCTIONS["COALESCE"].compute:
        source.line(f"{result} = None")
        for operand in expression.operands:
            with source.block(f"if {result} is None:"):
                source.line(f"{result} = {source.value(operand)}")
        return result
    values = []
    for index, operand in enumerate(expression.operands):
        convert, value = source.name(function.conversion(index)), source.local()
        source.line(f"{value} = {convert}({source.value(operand)})")
        values.append(value)
    arguments = ", ".join(values)
    called = f"{result} = {source.name(function.compute)}({arguments})"
    if function.strict:
        source.line(f"{result} = None")
        known = " and ".join(f"{value} is not None" for value in values)
        with source.block(f"if {known}:"):
            _count(source, function, arguments)
            source.line(called)
    else:
        _count(source, function, arguments)
        source.line(called)
    return result


def _count(source: Source, function: Function, arguments: str) -> None:
    """Write code that counts the work of the next call."""
    if function.work is not None:
        source.line(f"m.spend({source.name(function.work)}({arguments}))")


VALUES: Final[Writers] = {
    Literal: _literal,
    SystemField: _system_field,
    TopicLevel: _topic_level,
    UserProperty: _user_property,
    BareName: _bare_name,
    PayloadPath: _payload_path,
    Arithmetic: _arithmetic,
    SearchedCase: _searched_case,
    Call: _call,
}


_SYMBOLS: Final = {"=": "==", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}


def _not(source: Source, expression: Not) -> str:
    truth, result = source.truth(expression.operands[0]), source.local()
    source.line(f"{result} = None if {truth} is None else not {truth}")
    return result


def _and(source: Source, expression: And) -> str:
    return _chain(source, expression, "False", "True")


def _or(source: Source, expression: Or) -> str:
    return _chain(source, expression, "True", "False")


def _chain(source: Source, expression: Expression, decision: str, neutral: str) -> str:
    """Write a chain flat: each operand is evaluated while nothing is decided."""
    first, *rest = expression.operands
    result = source.local()
    source.line(f"{result} = {source.truth(first)}")
    for operand in rest:
        with source.block(f"if {result} is not {decision}:"):
            truth = source.truth(operand)
            with source.block(f"if {truth} is not {neutral}:"):
                source.line(f"{result} = {truth}")
    return result


def _is_null(source: Source, expression: IsNull) -> str:
    value, result = source.value(expression.operands[0]), source.local()
    source.line(f"{result} = {value} is None")
    return result


def _is_truth(source: Source, expression: IsTruth) -> str:
    truth, result = source.truth(expression.operands[0]), source.local()
    source.line(f"{result} = {truth} is {expression.truth}")
    return result


def _comparison(source: Source, expression: Comparison) -> str:
    left, right = expression.operands
    symbol = expression.operator
    if isinstance(left, Literal):
        left, right, symbol = right, left, MIRRORED[symbol]
    return _compared(source, source.value(left), symbol, right)


def _compared(source: Source, value: str, symbol: str, right: Expression) -> str:
    if isinstance(right, Literal):
        return _with_constant(source, value, symbol, right)
    other, result = source.value(right), source.local()
    order = source.name(ORDERS[symbol])
    source.line(f"{result} = {source.name(compare_counted)}(m, {order}, {value}, {other})")
    return result


def _between(source: Source, expression: Between) -> str:
    subject, low, high = expression.operands
    value, result = source.value(subject), source.local()
    source.line(f"{result} = {_compared(source, value, '>=', low)}")
    with source.block(f"if {result} is not False:"):
        below = _compared(source, value, "<=", high)
        with source.block(f"if {below} is not True:"):
            source.line(f"{result} = {below}")
    return result


def _in(source: Source, expression: In) -> str:
    """Write a search in a set of texts, or a comparison with each element until one is equal."""
    subject, *elements = expression.operands
    value, result = source.value(subject), source.local()
    constants = [each.value for each in elements if isinstance(each, Literal)]
    if len(constants) == len(elements) and all(isinstance(each, str) for each in constants):
        general = f"{source.name(any_equal)}({value}, {source.name(constants)})"
        longest = source.name(max(map(len, map(str, constants))))
        short = f"{source.name(len)}({value}) <= {longest}"
        among = f"{short} and {value} in {source.name(frozenset(map(str, constants)))}"
        text = f"{source.name(type)}({value}) is {source.name(str)}"
        source.line(f"{result} = ({among}) if {text} else {general}")
        return result
    source.line(f"{result} = {_compared(source, value, '=', elements[0])}")
    for element in elements[1:]:
        with source.block(f"if {result} is not True:"):
            equal = _compared(source, value, "=", element)
            with source.block(f"if {equal} is not False:"):
                source.line(f"{result} = {equal}")
    return result


def _like(source: Source, expression: Like) -> str:
    text, result = source.local(), source.local()
    source.line(f"{text} = {source.value(expression.operands[0])}")
    with source.block(f"if {source.name(type)}({text}) is not {source.name(str)}:"):
        source.line(f"{text} = {source.name(to_string)}({text})")
    matches, work = source.name(like_matcher(expression.pattern)), liked(expression.pattern)
    if work is not None:
        with source.block(f"if {text} is not None:"):
            source.line(f"m.spend({source.name(work)}({text}))")
    source.line(f"{result} = None if {text} is None else {matches}({text})")
    return result


def _with_constant(source: Source, value: str, symbol: str, right: Literal) -> str:
    """Write a comparison that checks for the usual types first, as the closure does."""
    constant, order, result = source.name(right.value), source.name(ORDERS[symbol]), source.local()
    general = f"{result} = {source.name(compare)}({order}, {value}, {constant})"
    kind = source.local()
    if type(right.value) is str:
        usual = f"{kind} is {source.name(str)}"
    elif type(right.value) in (int, float):
        usual = f"{kind} is {source.name(float)} or {kind} is {source.name(int)}"
    else:
        source.line(general)
        return result
    source.line(f"{kind} = {source.name(type)}({value})")
    with source.block(f"if {usual}:"):
        source.line(f"{result} = {value} {_SYMBOLS[symbol]} {constant}")
    with source.block("else:"):
        source.line(general)
    return result


CONDITIONS: Final[Writers] = {
    Not: _not,
    And: _and,
    Or: _or,
    IsNull: _is_null,
    IsTruth: _is_truth,
    Comparison: _comparison,
    Between: _between,
    In: _in,
    Like: _like,
}


MAXIMUM_NODES: Final = 128
"""Larger trees stay closures: the function would take milliseconds to make."""


def generate(expression: Expression, compiler: Compiler) -> Condition | None:
    """Return a function with the same result as `compiler.truth(expression)`, only faster.

    None for a tree of more than MAXIMUM_NODES.
    """
    if len(walk(expression)) > MAXIMUM_NODES:
        return None
    function: Condition = Source(compiler, VALUES, CONDITIONS).function(expression)
    return function
