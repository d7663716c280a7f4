"""Where a .pxd has drifted from its .py in ways that Cython compiles without a word.

A slot that the .pxd lacks fails at first use, a typed local that was renamed silently loses its
type. Understood are `cdef class`, `cdef` attributes, `cdef` and `cpdef` functions with
`@cython.locals` above them, and `cdef` names of the module.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_CLASS = re.compile(r"cdef class (\w+)")
_FUNCTION = re.compile(r"(?:cp?)?def (?:[^(]*[ *])?(\w+)\(")
_NAMES = re.compile(r"cdef (?!class |extern )(?:public |readonly )?[^(]*?[ *](\w+(?:, *\w+)*)$")
_TYPED = re.compile(r"(\w+) *=")


_Function = ast.FunctionDef | ast.AsyncFunctionDef
_INNER_SCOPE = (
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda),
    *(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
)


@dataclass(slots=True)
class Scope:
    """What a module or a class declares: functions with their locals, other names, classes."""

    names: set[str] = field(default_factory=set)
    functions: dict[str, set[str]] = field(default_factory=dict)
    classes: "dict[str, Scope]" = field(default_factory=dict)


def drift(py: str, pxd: str) -> list[str]:
    """Return a sentence for each difference that Cython would not report."""
    declared, written = declarations(pxd), definitions(py)
    found = [f"no {name} in the module" for name in sorted(declared.names - written.names)]
    found += _function_drift("", declared, written)
    for name, scope in declared.classes.items():
        actual = written.classes.get(name)
        if actual is None:
            found.append(f"no class {name} in the module")
            continue
        found += [f"{name}.{slot} is no slot" for slot in sorted(scope.names - actual.names)]
        found += [
            f"{name}.{slot} is not in the .pxd" for slot in sorted(actual.names - scope.names)
        ]
        found += _function_drift(f"{name}.", scope, actual)
    return found


def _function_drift(prefix: str, declared: Scope, written: Scope) -> Iterator[str]:
    for name, typed in declared.functions.items():
        if name not in written.functions:
            yield f"no function {prefix}{name}"
        else:
            missing = sorted(typed - written.functions[name])
            yield from (f"{prefix}{name} has no local {local}" for local in missing)


def declarations(pxd: str) -> Scope:
    """Return what a .pxd declares; a function's locals are those that it types."""
    module = Scope()
    scope, typed = module, set[str]()
    for indented, line in _logical_lines(pxd):
        if not indented:
            scope = module
        if opened := _CLASS.match(line):
            scope = module.classes[opened[1]] = Scope()
        elif line.startswith("@cython.locals("):
            typed = set(_TYPED.findall(line))
        elif function := _FUNCTION.match(line):
            scope.functions[function[1]] = typed
            typed = set()
        elif names := _NAMES.match(line):
            scope.names.update(re.split(r", *", names[1]))
    return module


def _logical_lines(pxd: str) -> Iterator[tuple[bool, str]]:
    """Give each line without its comment, joined while a parenthesis is open."""
    joined = ""
    for physical in pxd.splitlines():
        joined += physical.partition("#")[0].rstrip()
        if joined.strip() and joined.count("(") <= joined.count(")"):
            yield joined[0].isspace(), " ".join(joined.split())
            joined = ""


def definitions(py: str) -> Scope:
    """Return what a module defines; a class's names are its slots."""
    tree = ast.parse(py)
    module = Scope(functions=_functions(tree.body))
    module.names = _stored(tree.body)
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            module.classes[node.name] = Scope(_slots(node), _functions(node.body))
    return module


def _functions(body: list[ast.stmt]) -> dict[str, set[str]]:
    return {node.name: _locals(node) for node in body if isinstance(node, _Function)}


def _locals(function: _Function) -> set[str]:
    arguments = {node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg)}
    return arguments | _stored(function.body)


def _slots(node: ast.ClassDef) -> set[str]:
    for statement in node.body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "__slots__":
            slots = ast.literal_eval(statement.value)
            return {slots} if isinstance(slots, str) else set(slots)
    if any("slots=True" in ast.unparse(decorator) for decorator in node.decorator_list):
        fields = [statement for statement in node.body if isinstance(statement, ast.AnnAssign)]
        return {ast.unparse(statement.target) for statement in fields}
    return set()


def _stored(body: list[ast.stmt]) -> set[str]:
    """Return the names that a body itself binds, not those of scopes inside it."""
    names: set[str] = set()
    nodes: list[ast.AST] = list(body)
    while nodes:
        node = nodes.pop()
        if isinstance(node, _INNER_SCOPE):
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            names.add(node.name)
        nodes += ast.iter_child_nodes(node)
    return names
