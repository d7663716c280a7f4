from pathlib import Path

import pytest

from bench.harness.markdown import README, replace_section, table


def test_a_table_aligns_all_columns_but_the_first_to_the_right() -> None:
    assert table(["a", "b"], [["1", "2"]]) == "| a | b |\n| --- | --: |\n| 1 | 2 |"


def test_a_section_is_replaced_and_the_rest_stays(tmp_path: Path) -> None:
    file = tmp_path / "page.md"
    file.write_text("before\n<!-- x -->\nold\n<!-- /x -->\nafter\n<!-- y -->\n<!-- /y -->\n")
    replace_section(file, "x", "new \\1 text\n")
    replace_section(file, "y", "    a command\n\nmore")
    assert file.read_text() == (
        "before\n<!-- x -->\nnew \\1 text\n<!-- /x -->\nafter\n"
        "<!-- y -->\n    a command\n\nmore\n<!-- /y -->\n"
    )


@pytest.mark.parametrize("text", ["nothing", "<!-- x -->\n<!-- /x -->\n" * 2])
def test_a_file_must_have_the_markers_once(tmp_path: Path, text: str) -> None:
    file = tmp_path / "page.md"
    file.write_text(text)
    with pytest.raises(ValueError, match="markers of 'x'"):
        replace_section(file, "x", "new")
    assert file.read_text() == text


@pytest.mark.parametrize(
    "name", ["side_by_side", "real_traffic", "growth", "soak", "topic_matching"]
)
def test_the_page_has_the_sections_that_commands_write(name: str, tmp_path: Path) -> None:
    copy = tmp_path / "README.md"
    copy.write_text(README.read_text())
    replace_section(copy, name, "a table")
    assert f"<!-- {name} -->\na table\n<!-- /{name} -->" in copy.read_text()
