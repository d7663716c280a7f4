import ast
import re
from pathlib import Path

from tests.support.pxd import declarations, definitions, drift
from tests.support.table import table

GATEWAY = Path(__file__).parents[1] / "gateway"


def test_each_pxd_is_in_step_with_its_module() -> None:
    found = {
        str(pxd.relative_to(GATEWAY)): drift(pxd.with_suffix(".py").read_text(), pxd.read_text())
        for pxd in GATEWAY.rglob("*.pxd")
    }
    assert {name: sentences for name, sentences in found.items() if sentences} == {}


def test_no_class_is_made_from_one_that_its_pxd_calls_final() -> None:
    final = {
        name
        for pxd in GATEWAY.rglob("*.pxd")
        for name in re.findall(r"@cython\.final\ncdef class (\w+)", pxd.read_text())
    }
    assert "TopicTrie" in final  # else the expression above finds none
    found = [
        f"{path}: {definition.name}({ast.unparse(base)})"
        for folder in (GATEWAY, GATEWAY.parent / "bench")  # it measures the compiled gateway
        for path in folder.rglob("*.py")
        for definition in ast.walk(ast.parse(path.read_text()))
        if isinstance(definition, ast.ClassDef)
        for base in definition.bases
        if ast.unparse(base).rpartition(".")[2] in final
    ]
    assert found == []


def test_no_module_imports_what_a_pxd_makes_a_c_name() -> None:
    names = {
        f"gateway.{'.'.join(pxd.relative_to(GATEWAY).with_suffix('').parts)}": set(
            re.findall(r"^cdef (?!class)[^(\n]*?(\w+)(?:\(|$)", pxd.read_text(), flags=re.MULTILINE)
        )
        for pxd in GATEWAY.rglob("*.pxd")
    }
    assert "NEVER" in names["gateway.server.socket_selector"]  # else the expression finds none
    found = [
        f"{path.relative_to(GATEWAY)}: {node.module}.{alias.name}"
        for path in GATEWAY.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module in names
        for alias in node.names
        if alias.name in names[node.module] and not _is_cimported(path, node.module, alias.name)
    ]
    assert found == []


def _is_cimported(path: Path, module: str, name: str) -> bool:
    pxd = path.with_suffix(".pxd")
    cimport = re.compile(rf"^from {re.escape(module)} cimport [^\n]*\b{name}\b", re.MULTILINE)
    return pxd.exists() and cimport.search(pxd.read_text()) is not None


PY = '''
"""A reader of varints."""

from dataclasses import dataclass

LIMIT = 4
_LIMIT = LIMIT


class Reader:
    """Reads."""

    __slots__ = (
        "data",
        "position",
    )

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.position = 0

    def varint(self, most: int) -> int:
        value = shift = 0
        for place in range(most):
            byte = self.data[place]
            try:
                value |= byte << shift
            except OverflowError as error:
                raise ValueError from error
        doubled = [each * 2 for each in range(value)]
        return len(doubled)


@dataclass(slots=True)
class Packet:
    """A packet."""

    kind: int
    body: bytes = b""

    def size(self) -> int:
        return len(self.body)


class Empty:
    """Has no slots of its own."""

    __slots__ = ()


def skip(reader: Reader, count: int, far: bool = False) -> None:
    def inner() -> int:
        hidden = count
        return hidden

    while (left := inner()) > 0:
        count -= left
'''

PXD = """
import cython

cdef int _LIMIT  # the public name stays visible

cdef class Reader:
    cdef bytes data
    cdef public Py_ssize_t position

    @cython.locals(value="unsigned int", shift=int, place=Py_ssize_t, byte=cython.uchar,
                   error=object)
    cpdef unsigned int varint(self, Py_ssize_t most) except *

cdef class Packet:
    cdef readonly int kind
    cdef bytes body

    cpdef Py_ssize_t size(self)

cdef class Empty:
    pass

@cython.locals(left=int)
cdef inline void skip(Reader reader, int count, bint far=*)
"""


def test_what_is_in_step_gives_no_drift() -> None:
    assert drift(PY, PXD) == []


def test_a_pxd_is_read_as_it_was_written() -> None:
    module = declarations(PXD)
    assert module.names == {"_LIMIT"}
    assert module.functions == {"skip": {"left"}}
    assert list(module.classes) == ["Reader", "Packet", "Empty"]
    assert module.classes["Reader"].names == {"data", "position"}
    assert module.classes["Reader"].functions["varint"] >= {"value", "byte", "error"}
    assert module.classes["Packet"].functions == {"size": set()}


def test_slots_are_understood_in_each_form() -> None:
    forms = {'__slots__ = "a"': {"a"}, '__slots__ = ["a", "b"]': {"a", "b"}, "pass": set[str]()}
    for text, slots in forms.items():
        assert definitions(f"class C:\n    {text}\n").classes["C"].names == slots


DRIFTS = [
    ("cdef bytes data", "cdef bytes date", ["Reader.date is no slot", "Reader.data is not in"]),
    ("    cdef bytes data\n", "", ["Reader.data is not in the .pxd"]),
    ("cdef bytes body", "cdef bytes body, tail", ["Packet.tail is no slot"]),
    ("cdef readonly int kind", "cdef int *kinds", ["Packet.kinds is no", "Packet.kind is not"]),
    ("value=", "valve=", ["Reader.varint has no local valve"]),
    ("error=object", "problem=object", ["Reader.varint has no local problem"]),
    ("error=object", "each=int", ["Reader.varint has no local each"]),
    ("left=int", "hidden=int", ["skip has no local hidden"]),
    ("void skip(", "int *skim(", ["no function skim"]),
    ("Py_ssize_t size(", "Py_ssize_t length(", ["no function Packet.length"]),
    ("cdef class Packet", "cdef class Parcel", ["no class Parcel in the module"]),
    ("int _LIMIT", "int _LIMITS", ["no _LIMITS in the module"]),
]


@table(("step", "misstep", "sentences"), DRIFTS)
def test_each_kind_of_drift_is_found(step: str, misstep: str, sentences: list[str]) -> None:
    assert PXD.count(step) == 1
    found = drift(PY, PXD.replace(step, misstep))
    assert len(found) == len(sentences)
    assert all(given.startswith(start) for given, start in zip(found, sentences, strict=True))
