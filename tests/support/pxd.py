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

_SLOT = re.compile(r"cdef (public |readonly )?(?!class |extern )[^(]*?\b(\w+(?:, *\w+)*)$")
_PARAMETERS = re.compile(r"\((.*)\)")
_TYPED_PARAMETER = re.compile(r"(_?[A-Z]\w*) (\w+)")
_TYPED_LOCAL = re.compile(r"(\w+) *= *(_?[A-Z]\w*)")

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


def protected(pxd: str) -> dict[str, set[str]]:
    """Return the attributes of each class that only compiled code which knows the class may set."""
    found: dict[str, set[str]] = {}
    slots: set[str] = set()
    for indented, line in _logical_lines(pxd):
        if opened := _CLASS.match(line):
            slots = found.setdefault(opened[1], set())
        elif indented and (slot := _SLOT.match(line)) and slot[1] != "public ":
            slots.update(re.split(r", *", slot[2]))
    return found


def typed_names(pxd: str) -> dict[str, dict[str, str]]:
    """Return the parameters and locals of each function that a .pxd types, with their class."""
    found: dict[str, dict[str, str]] = {}
    typed: dict[str, str] = {}
    for _, line in _logical_lines(pxd):
        if line.startswith("@cython.locals("):
            typed = dict(_TYPED_LOCAL.findall(line))
        elif function := _FUNCTION.match(line):
            parameters = _PARAMETERS.search(line)
            given = _TYPED_PARAMETER.findall(parameters[1]) if parameters else []
            own = found.setdefault(function[1], {})
            own.update({**typed, **{name: kind for kind, name in given}})
            typed = {}
    return found


def forbidden_stores(
    py: str, slots: dict[str, set[str]], typed: dict[str, dict[str, str]]
) -> list[str]:
    """Return where a module sets an attribute of `slots` that is an error once it is compiled.

    A local's class is known from calls of the class and annotations; Cython knows it if the .pxd
    types it (`typed`), or if it is bound by such calls alone.
    """
    return [
        f"{function.name}: {name}.{attribute}"
        for function in ast.walk(ast.parse(py))
        if isinstance(function, _Function)
        for name, attribute, kinds in _stores(function, slots)
        if typed.get(function.name, {}).get(name) not in kinds
    ]


def _stores(function: _Function, slots: dict[str, set[str]]) -> Iterator[tuple[str, str, set[str]]]:
    """Give each stored attribute that may be protected: the local, the attribute, its classes."""
    kinds: dict[str, set[str]] = {}
    others: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.arg) and node.annotation is not None:
            kinds.setdefault(node.arg, set()).add(ast.unparse(node.annotation).strip("'"))
            others.add(node.arg)
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            for name in (each.id for each in node.targets if isinstance(each, ast.Name)):
                kinds.setdefault(name, set()).add(ast.unparse(node.value.func))
        elif isinstance(node, ast.For):
            others |= {each.id for each in ast.walk(node.target) if isinstance(each, ast.Name)}
    for node in ast.walk(function):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            name = ast.unparse(node.value)
            classes = {kind for kind in kinds.get(name, ()) if node.attr in slots.get(kind, ())}
            if classes and name in others:
                yield name, node.attr, classes
