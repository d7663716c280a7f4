"""Finds what works in plain Python and fails compiled: an attribute that a `.pxd` hides.

    .venv/bin/python tools/check_compiled.py

A compiled class has only the attributes of its `.pxd`. Those without `public` or `readonly`, and
its `cdef` methods, are reached by way of a variable whose class a `.pxd` names, and a `readonly`
one is set by way of such a variable alone. Types come from mypy, so that a name that two classes
share is no question.
"""

import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from mypy import build, main, nodes
from mypy.types import Instance, Type, UnionType, get_proper_type

ROOT = Path(__file__).parents[1]
INNER = r"((?:[^()]|\([^()]*\))*)"
FUNCTION = re.compile(
    rf"(?:@cython\.locals\({INNER}\)\s*)?c?p?def [^\n(]*?(\w+)\(\s*{INNER}\)", re.MULTILINE
)
LOCAL = re.compile(r"\b(\w+)=(\w+)\b")
ARGUMENT = re.compile(r"\b(\w+) (\w+)\b")
CLASS = re.compile(r"^cdef class (\w+)")
FIELD = re.compile(r"^    cdef (public |readonly )?(\"[^\"]+\"|[\w.]+(?: \w+)?) (\w+)$")
METHOD = re.compile(r"^    cdef (?:\"[^\"]+\" |[\w.]+ )?(\w+)\(")
BELOW = (nodes.Statement, nodes.Expression, nodes.SymbolNode)
SETS = (nodes.AssignmentStmt, nodes.OperatorAssignmentStmt, nodes.ForStmt)
ELSEWHERE = {"node", "info", "analyzed", "definition", "fullname", "type", "variables", "imports"}
"""Attributes of mypy's nodes that lead to other places, or to what was found out."""


class Declarations:
    """What the `.pxd` files say: `hidden` and `readonly` names of classes, and `typed` variables.

    The latter are pairs of a class, without its module, and a name, by module and function, and
    those of `fields`.
    """

    def __init__(self, root: Path, package: str) -> None:
        self.hidden: dict[str, set[str]] = defaultdict(set)
        self.readonly: dict[str, set[str]] = defaultdict(set)
        self.typed: dict[tuple[str, str], set[tuple[str, str]]] = defaultdict(set)
        self.fields: set[tuple[str, str]] = set()
        for path in (root / package).rglob("*.pxd"):
            self._read(path, ".".join(path.relative_to(root).with_suffix("").parts))

    def reaches(self, module: str, function: str, owner: str, expression: nodes.Expression) -> bool:
        """Return whether a function's expression is known to be of this class when compiled."""
        kind = owner.rpartition(".")[2]
        if isinstance(expression, nodes.NameExpr):
            name = expression.name
            return name == "self" or (kind, name) in self.typed[module, function]
        return isinstance(expression, nodes.MemberExpr) and (kind, expression.name) in self.fields

    def _read(self, path: Path, module: str) -> None:
        text = path.read_text(encoding="utf-8")
        for local, name, arguments in FUNCTION.findall(text):
            self.typed[module, name] |= {(kind, each) for each, kind in LOCAL.findall(local)}
            self.typed[module, name] |= set(ARGUMENT.findall(arguments))
        name = ""
        for line in text.splitlines():
            if found := CLASS.match(line):
                name = f"{module}.{found[1]}"
            elif found := FIELD.match(line):
                self.fields.add((found[2], found[3]))
                if not found[1]:
                    self.hidden[name].add(found[3])
                elif found[1] == "readonly ":
                    self.readonly[name].add(found[3])
            elif found := METHOD.match(line):
                self.hidden[name].add(found[1])


def faults(
    module: str, tree: nodes.MypyFile, types: dict[nodes.Expression, Type], declared: Declarations
) -> Iterator[str]:
    """Yield a line for each attribute that this module cannot reach, or set, once compiled."""
    below = list(expressions(tree.defs, set(), ""))
    assigned = set(targets(each for each, _ in below if isinstance(each, SETS)))
    for each, function in below:
        if not isinstance(each, nodes.MemberExpr):
            continue
        where = f"{module.replace('.', '/')}.py:{each.line}: "
        for owner in classes_of(types.get(each.expr)):
            hidden = each.name in declared.hidden[owner]
            if not hidden and not (each.name in declared.readonly[owner] and each in assigned):
                continue
            if not declared.reaches(module, function, owner, each.expr):
                what = "neither public nor readonly" if hidden else "readonly, and set here"
                yield f"{where}{owner}.{each.name} is {what}; no .pxd has the variable's type"


def classes_of(found: Type | None) -> Iterator[str]:
    """Yield the full names of the classes that a value may be of, and of their bases."""
    proper = get_proper_type(found)
    for each in proper.items if isinstance(proper, UnionType) else [proper]:
        one = get_proper_type(each)
        if isinstance(one, Instance):
            yield from (base.fullname for base in one.type.mro)


def expressions(node: object, seen: set[int], function: str) -> Iterator[tuple[nodes.Node, str]]:
    """Yield a node of a file and all below it, each with the name of its outermost function.

    What a node refers to elsewhere is not below it.
    """
    if isinstance(node, (list, tuple)):
        for each in node:
            yield from expressions(each, seen, function)
    elif isinstance(node, BELOW) and id(node) not in seen:
        seen.add(id(node))
        yield node, function
        if isinstance(node, nodes.FuncDef):
            function = function or node.name
        attributes: tuple[str, ...] = vars(type(node))["__mypyc_attrs__"]
        for name in attributes:
            if name not in ELSEWHERE:
                yield from expressions(getattr(node, name, None), seen, function)


def targets(below: Iterable[nodes.Node]) -> Iterator[nodes.Node]:
    """Yield what assignments and loops set, also in tuples."""
    for each in below:
        if isinstance(each, nodes.AssignmentStmt):
            yield from targets(each.lvalues)
        elif isinstance(each, nodes.OperatorAssignmentStmt):
            yield each.lvalue
        elif isinstance(each, nodes.ForStmt):
            yield from targets([each.index])
        elif isinstance(each, (nodes.TupleExpr, nodes.ListExpr)):
            yield from targets(each.items)
        elif isinstance(each, nodes.MemberExpr):
            yield each


def check(root: Path, package: str) -> list[str]:
    """Return the faults in a package of the folder; raise SystemExit if mypy finds errors."""
    sources, options = main.process_options([str(root / package)])
    options.export_types = options.preserve_asts = True
    options.incremental = False
    result = build.build(sources=sources, options=options)
    if result.errors:
        raise SystemExit("\n".join(result.errors))
    declared = Declarations(root, package)
    found: list[str] = []
    for module, tree in result.files.items():
        if module.partition(".")[0] == package:
            found += faults(module, tree, result.types, declared)
    return found


if __name__ == "__main__":
    lines = check(ROOT, "gateway")
    print("\n".join(lines) or "each attribute can be reached compiled")
    sys.exit(bool(lines))
