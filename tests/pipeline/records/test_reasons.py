import re
from pathlib import Path

from pipeline.records import reasons

PAGE = Path(__file__).parents[3] / "docs/use/pipeline-tables.md"


def test_each_reason_is_of_one_kind() -> None:
    kinds = [*reasons.OF_A_LINE, *reasons.OF_A_RECORD, *reasons.OF_A_FILE]
    words = {
        value for name, value in vars(reasons).items() if name.isupper() and isinstance(value, str)
    }
    assert len(kinds) == len(set(kinds))
    assert set(kinds) == words


def test_the_page_explains_each_reason_and_its_kind() -> None:
    rows = [line.split(" | ") for line in PAGE.read_text(encoding="utf-8").splitlines()]
    reported = {
        word: row[1] for row in rows if len(row) > 2 for word in re.findall(r"`(\w+)`", row[0])
    }
    for kind, words in (
        ("line", reasons.OF_A_LINE),
        ("record", reasons.OF_A_RECORD),
        ("file", reasons.OF_A_FILE),
    ):
        assert {word: reported.get(word) for word in words} == dict.fromkeys(words, kind)
