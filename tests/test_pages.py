"""What the pages point at is there: files, folders and the sections of other pages."""

import re
from pathlib import Path

from tests.support.table import table

ROOT = Path(__file__).parents[1]

PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    ROOT / "bench/attacks.md",
    *(ROOT / folder / "README.md" for folder in ("bench", "firmware", "systemd")),
    *sorted((ROOT / "gateway").glob("*/README.md")),
]

PARTS = sorted(page for page in PAGES if page.parent.parent == ROOT / "gateway")

ROOM_LINES = 60
"""Lines of a room's page, at most: it is read in two minutes."""

LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")
SOURCE = re.compile(r"`((?:[\w.*-]+/)+[\w.*-]+\.(?:py|pxd|sh|toml|json|md))`")
"""Paths from the repository's root or from `gateway/`, some with a `*`."""


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def sections(page: Path) -> set[str]:
    """Return what a link to a section of the page may end with, as GitHub makes it."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@table("page", PAGES, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    for path, section in LINK.findall(page.read_text(encoding="utf-8")):
        target = page.parent / path if path else page
        assert target.exists(), path
        assert not section or section in sections(target), f"{path}#{section}"


@table("page", PAGES, ids=name)
def test_paths_of_sources_are_there(page: Path) -> None:
    for path in SOURCE.findall(page.read_text(encoding="utf-8")):
        assert any(list(folder.glob(path)) for folder in (ROOT, ROOT / "gateway")), path


@table("page", PARTS, ids=name)
def test_a_room_s_page_is_short_and_names_what_is_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= ROOM_LINES
    for file in re.findall(r"`(\w+\.py)\b", text):
        folder = ROOT / "tests" if file.startswith("test_") else ROOT / "gateway"
        assert any(folder.rglob(file)), file


def test_pictures_have_light_and_dark_colours_and_are_shown() -> None:
    pictures = [*(ROOT / "docs").rglob("*.svg")]
    linked = {
        (page.parent / path).resolve()
        for page in PAGES
        for path, _ in LINK.findall(page.read_text(encoding="utf-8"))
    }
    assert pictures
    for picture in pictures:
        assert "prefers-color-scheme" in picture.read_text(encoding="utf-8"), picture.name
        assert picture.resolve() in linked, f"no page shows {picture.name}"


def test_each_room_has_a_page() -> None:
    rooms = {file.parent.name for file in (ROOT / "gateway").glob("*/__init__.py")}
    assert {page.parent.name for page in PARTS} == rooms


def test_the_pages_name_many() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    assert len(SOURCE.findall(text)) > 20
    assert "the-turn" in sections(ROOT / "ARCHITECTURE.md")


def test_the_summary_of_attacks_is_that_of_their_table() -> None:
    text = (ROOT / "docs/understand/robustness.md").read_text(encoding="utf-8")
    attacks = (ROOT / "bench/attacks.md").read_text(encoding="utf-8")
    found = re.findall(r"\| (\d+) \| (\d+) \| \d+ to (\d+) \|$", attacks, re.MULTILINE)
    plain, compiled, mebibytes = (sorted(map(int, each)) for each in zip(*found, strict=True))
    count, fast = len(found), [sum(ms <= 20 for ms in each) for each in (plain, compiled)]
    assert f"of {count} attacks" in text
    assert f"median | {plain[count // 2]} ms | {compiled[count // 2]} ms |" in text
    assert f"worst attack | {plain[-1]} ms | {compiled[-1]} ms |" in text
    assert f"within 20 ms | {fast[0]} | {fast[1]} |" in text
    assert f"more than {mebibytes[-1]} MiB" in text


def test_sections_that_sources_name_are_there() -> None:
    named = re.compile(r'\((docs/[a-z/-]+\.md), "?([A-Z][^")]+)"?\)')
    found = [
        (path, section)
        for folder in ("gateway", "pipeline", "tui", "firmware")
        for source in (ROOT / folder).rglob("*.py")
        for path, section in named.findall(source.read_text(encoding="utf-8"))
    ]
    assert found
    for path, section in found:
        assert f"# {section}\n" in (ROOT / path).read_text(encoding="utf-8"), f"{path}: {section}"


def test_the_page_of_alarms_has_each() -> None:
    raised = re.compile(
        r'(?:\balarm[(,] ?|\bnext_alarms\[|^(?:ALARM|MOVED|EXPORTED) = )"(\w+)"', re.MULTILINE
    )
    found = {
        name
        for folder in ("app", "uplink")
        for source in (ROOT / "gateway" / folder).rglob("*.py")
        for name in raised.findall(source.read_text(encoding="utf-8"))
    }
    page = (ROOT / "docs/operate/alarms.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| `([a-z_]+)` \|", page, re.MULTILINE))
    assert found == listed
    assert len(found) > 10
