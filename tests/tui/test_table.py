import pytest

from tui.line import plain
from tui.table import Column, Table, filter_of

Row = tuple[str, float | None]
COLUMNS = [
    Column[Row]("NAME", 0, lambda row: row[0], lambda row: row[0]),
    Column[Row]("VALUE", 6, lambda row: (str(row[1]), "head"), lambda row: row[1], right=True),
    Column[Row]("WIDE", 9, lambda row: "w", least=50),
]
ROWS: list[Row] = [("b", 2.0), ("a", None), ("c", 10.0), ("d", -1.0)]


@pytest.fixture
def table() -> Table[Row]:
    made = Table(COLUMNS, lambda row: row[0], 0)
    made.fill(ROWS)
    return made


def names(table: Table[Row]) -> str:
    return "".join(row[0] for row in table.rows)


def test_sorting(table: Table[Row]) -> None:
    assert names(table) == "abcd"
    table.next_sort()
    table.fill(ROWS)
    assert (names(table), table.sorted_by()) == ("cbda", "value")
    table.turn_sort()
    table.fill(ROWS)
    assert names(table) == "adbc"
    table.next_sort()
    assert table.sorted_by() == "name"


def test_the_cursor_stays_with_its_row(table: Table[Row]) -> None:
    table.move(2)
    table.fill([("c", 1.0), ("z", 2.0)])
    assert table.current == ("c", 1.0)
    table.fill([("x", 1.0)])
    assert table.current == ("x", 1.0)
    table.fill([])
    assert not table.rows
    table.point_at("b")
    table.fill(ROWS)
    assert table.current == ("b", 2.0)


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("boiler temp", True),
        ("!attic", True),
        ("!boiler", False),
        ("~^sensors/b.*r", True),
        ("~(", False),
        ("x", False),
        ("", True),
    ],
)
def test_filters(words: str, found: bool) -> None:
    assert filter_of(words)("Sensors/boiler/temperature") is found


def test_drawing(table: Table[Row]) -> None:
    table.filter = "!a"
    table.fill(ROWS)
    lines = [plain(each) for each in table.draw(20, 3)]
    assert [each.split() for each in lines] == [
        ["NAME▲", "VALUE"],
        ["▌", "b", "2.0"],
        ["c", "10.0"],
    ]
    assert {len(each) for each in lines} == {20}
    assert "WIDE" in plain(table.draw(60, 3)[0])
    table.page(1)
    table.page(1)
    assert plain(table.draw(20, 3)[2]).split() == ["▌", "d", "-1.0"]
    assert table.click(0)
    assert not table.click(7)
    table.filter = "nobody"
    table.fill(ROWS)
    assert "nothing matches" in plain(table.draw(40, 4)[1])
