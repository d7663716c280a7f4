"""Attributes that a `.pxd` hides are found where they are used."""

from pathlib import Path

from tools.check_compiled import check

PXD = """\
cdef class Box:
    cdef int hidden
    cdef readonly int shown
    cdef public int free
    cdef int _open(self, int key)
"""
BOX = """\
class Box:
    def __init__(self) -> None:
        self.hidden = self.shown = self.free = 0

    def _open(self, key: int) -> int:
        return key
"""
USER = """\
from house.box import Box

def use(box: Box | None) -> int:
    if box is None:
        return 0
    if box.shown:
        for box.free, box.shown in ((1, 2),):
            box.free = box._open(1)
        (box.shown, box.free) = (1, 2)
    return box.hidden

def both(boxes: list[Box]) -> None:
    one = Box()
    for one in boxes:
        one.shown = one.free = 1
"""


def test_what_a_pxd_hides_from_others_is_found(tmp_path: Path) -> None:
    house = tmp_path / "house"
    house.mkdir()
    (house / "__init__.py").touch()
    (house / "box.pxd").write_text(PXD)
    (house / "box.py").write_text(BOX)
    (house / "user.py").write_text(USER)
    (house / "known.py").write_text(USER)
    (house / "known.pxd").write_text(
        "cpdef int use(Box box)\n\n@cython.locals(one=Box)\ncpdef both(list boxes)\n"
    )
    fault = "house/user.py:{}: house.box.Box.{}; no .pxd has the variable's type"
    assert sorted(check(tmp_path, "house")) == [
        fault.format(10, "hidden is neither public nor readonly"),
        fault.format(15, "shown is readonly, and set here"),
        fault.format(7, "shown is readonly, and set here"),
        fault.format(8, "_open is neither public nor readonly"),
        fault.format(9, "shown is readonly, and set here"),
    ]
