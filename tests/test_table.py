"""A table of cases is one test, and tells every case that fails by its name."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.table import table

FAILING = """
from tests.support.table import table

seen = []

@table("number", [1, 2, 3])
@table(("first", "second"), [(1, 2), (2, 2)], ids=["rising", "alike"])
def test_product(first, number, second, tmp_path):
    seen.append((first, second, number))
    assert tmp_path.is_dir()
    assert first != number or first == 2

@table("text", ["a", "b"])
async def test_async(text):
    assert text == "a"

def test_every_row_ran():
    assert len(seen) == 6
"""


def test_each_case_that_fails_is_named_and_the_others_run(tmp_path: Path) -> None:
    file = tmp_path / "test_failing.py"
    file.write_text(FAILING)
    root = Path(__file__).parent.parent
    command = [sys.executable, "-m", "pytest", "-q", "-c", str(root / "pyproject.toml")]
    command += ["-p", "no:cacheprovider", f"--rootdir={root}", str(file)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    found = [line.split(" ")[0] for line in done.stdout.splitlines() if "FAILED" in line]
    assert sorted(found) == ["FAILED", "FAILED", "SUBFAILED[b]", "SUBFAILED[rising-1]"], done.stdout
    assert "1 passed" in done.stdout


@table("row", [0])
@table("column", [1, 2], ids=str)
def test_the_names_of_a_product_are_joined(row: int, column: int) -> None:
    assert row < column


def test_a_table_without_rows_could_not_fail() -> None:
    with pytest.raises(ValueError, match=r"the table of \['a'\] has no row"):
        table("a", [])


def test_a_row_has_no_marks_of_its_own() -> None:
    with pytest.raises(ValueError, match="no marks of its own"):
        table("a", [pytest.param(1, marks=pytest.mark.skip(reason="never"))])


def test_a_name_is_an_argument() -> None:
    def test(a: int) -> None:
        assert a

    with pytest.raises(TypeError, match="test has no argument b"):
        table("b", [1])(test)
