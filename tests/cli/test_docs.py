"""`tidegate docs` prints the section that a reader looks for, and names others."""

import re
import sys
from pathlib import Path

import pytest

from gateway.cli import docs
from gateway.cli.docs import Section, command_docs, expand_names, find, read_sections
from gateway.errors import TidegateError
from tests.support.table import table

ROOT = Path(__file__).parents[2]

PAGE = """# A full disk

See [the *log*](../use/log.md#full) and ![a picture](p.svg).
<!-- for a test -->
```sh
# no heading
[no](link)
```
## Free space

Delete something.
"""


def test_sections_of_a_page(tmp_path: Path) -> None:
    page = tmp_path / "disk.md"
    page.write_text(PAGE)
    code = "```sh\n# no heading\n[no](link)\n```\n"
    assert [*read_sections(page)] == [
        Section("disk", "A full disk", f"See the *log* and a picture.\n{code}"),
        Section("disk", "Free space", "Delete something.\n"),
    ]


@table(
    ("words", "page", "heading"),
    [
        ("disk full", "disk", "full"),
        ("loop prevention", "fleet", "Loop prevention"),
        ("esp connect", "troubleshooting", "My ESP cannot connect"),
        ("Alarms", "alarms", ""),
        ("deadband", "where", "Functions that remember"),
        ("recall", "fleet-interface", "Recall"),  # not the figures recall/requests, …
        ("maximum_inflight", "configuration", "broker"),
        ("uplink/puback_ms", "sys-topics", "Uplinks"),  # in uplink/{inflight,puback_ms,…}
        ("aliases/out/bytes_held", "sys-topics", "Caches"),
    ],
)
def test_the_best_section_comes_first(words: str, page: str, heading: str) -> None:
    sections = [each for file in (ROOT / "docs").glob("*/*.md") for each in read_sections(file)]
    best, *_ = find(sections, words.split())
    assert best.page == page
    assert heading in best.heading


def test_words_begin_words() -> None:
    section = Section("disk", "Full", "the sync of a file")
    assert find([section], ["sync", "DISK"]) == [section]
    assert find([section], ["ync"]) == []


def test_an_item_defines_its_name_in_code_font_alone() -> None:
    definition = Section("bounds", "Keys", "- `limit = 5`: bytes\n" + "of a file " * 50)
    mention = Section("bounds", "Text", "- Limit the rate, or the limit is reached.\n")
    assert find([mention, definition], ["limit"]) == [definition, mention]


@table(
    ("text", "expanded"),
    [
        ("`a/{b,c}`: d", "`a/b`, `a/c`: d"),
        ("`a/{b,c}/d_{e,f}`", "`a/b/d_e`, `a/b/d_f`, `a/c/d_e`, `a/c/d_f`"),
        ("`a{b}`, {c,d}, `{e,f}`", "`a{b}`, {c,d}, `e`, `f`"),
        ('`a{b="c", d="e"}`', '`a{b="c", d="e"}`'),
    ],
)
def test_names_in_braces(text: str, expanded: str) -> None:
    assert expand_names(text) == expanded


def test_output(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdin, "isatty", lambda: False, raising=False)
    assert command_docs([]) == 0
    assert re.search(r"^upgrade +Upgrade$", capsys.readouterr().out, re.MULTILINE)
    assert command_docs(["upgrade"]) == 0
    page = capsys.readouterr().out
    assert page.startswith("upgrade: Upgrade\n\n")
    assert "upgrade: Back to the previous version" in page
    assert command_docs(["disk", "full"]) == 0
    assert "See also, by their words:\n    disk: " in capsys.readouterr().out


def test_errors(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(TidegateError, match="no page has 'xyzzy plugh'; tidegate docs lists"):
        command_docs(["xyzzy", "plugh"])
    monkeypatch.setattr(docs, "PLACES", (tmp_path,))
    with pytest.raises(TidegateError, match="no documentation at "):
        command_docs([])
